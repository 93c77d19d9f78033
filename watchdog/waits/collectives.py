"""Frames of collectives, point-to-point calls and group set-up."""

from __future__ import annotations

from watchdog.waits.patterns import Pattern

_C10D = r"distributed_c10d\.py$"
_OPS = (
    r"barrier|monitored_barrier|all_reduce|all_reduce_coalesced|reduce|broadcast"
    r"|broadcast_object_list|all_gather|all_gather_into_tensor|all_gather_object"
    r"|all_gather_coalesced|gather|gather_object|scatter|scatter_object_list|reduce_scatter"
    r"|reduce_scatter_tensor|all_to_all|all_to_all_single|send|recv|isend|irecv"
    r"|send_object_list|recv_object_list|batch_isend_irecv"
)

COLLECTIVES: tuple[Pattern, ...] = (
    Pattern("collective", _OPS, _C10D),
    Pattern("collective", _OPS, r"_functional_collectives\.py$"),
    Pattern("collective", r"_all_gather_sizes|_object_to_tensor", _C10D, "all_gather_object"),
    Pattern("collective", r"full_tensor", r"tensor/_api\.py$", "all_gather"),
    Pattern(
        "collective", r"wait_tensor|redistribute_local_tensor", r"torch/distributed", "all_gather"
    ),
    Pattern("collective", r"(recv|send)_(forward|backward)\w*", r"p2p_communication\.py$"),
    Pattern("collective", r"_communicate\w*", r"p2p_communication\.py$", "send/recv"),
    Pattern(
        "collective", r"(nccl)?(AllReduce|AllGather|Broadcast|ReduceScatter|Send|Recv)", r"nccl"
    ),
    Pattern(
        "collective", r"nccl(AllReduce|AllGather|Broadcast|Bcast|ReduceScatter|Reduce|Send|Recv)"
    ),
    Pattern(
        "collective", r"(broadcast|all_reduce|all_gather|send|recv)", r"pynccl(_wrapper)?\.py$"
    ),
    Pattern("collective", r"barrier", r"distributed/(stateless_process_group|utils)\.py$"),
    Pattern(
        "collective", r"(broadcast|allreduce|allgather|barrier|send|recv)", r"ray/util/collective/"
    ),
    Pattern("collective", r"packed_broadcast_(producer|consumer)", operation="broadcast"),
    Pattern(
        "collective",
        r"receive_weights|broadcast_state_dict|receive_state_dict|trainer_send_weights",
        operation="broadcast",
    ),
    Pattern(
        "collective",
        r"update_weights_from_distributed",
        r"model_runner|weight_updater",
        operation="broadcast",
    ),
    Pattern("collective", r"torch_dist_barrier_and_cuda_sync", operation="barrier"),
    Pattern("collective", r"wait_for_everyone", operation="barrier"),
)

NATIVE_COLLECTIVES: tuple[Pattern, ...] = (
    Pattern(
        "collective", r"c10d::ProcessGroup(NCCL|Gloo|UCC|MPI)?::(?!ProcessGroup|init|eager)[\w:]+"
    ),
    Pattern(
        "collective",
        r"c10d::Work::wait|c10d::ProcessGroupGloo::\w*Work\w*::\w+",
        operation="collective",
    ),
    Pattern(
        "collective",
        r"gloo::(barrier|allgather\w*|allreduce\w*|broadcast|gather\w*|scatter|reduce)",
    ),
    Pattern(
        "collective",
        r"gloo::transport::\w+::UnboundBuffer::wait(Recv|Send)",
        operation="collective",
    ),
    Pattern(
        "collective",
        r"ncclLocalOpAppend|ncclProxySaveOp|ncclEnqueueCheck|ncclLaunchFinish",
        operation="collective",
    ),
)

RENDEZVOUS: tuple[Pattern, ...] = (
    Pattern(
        "rendezvous",
        r"new_group|_new_group_with_tag|new_subgroups\w*|_new_process_group_helper",
        _C10D,
        "new_group",
    ),
    Pattern("rendezvous", r"split_group", _C10D),
    Pattern("rendezvous", r"init_process_group", operation="init_process_group"),
    Pattern("rendezvous", r"_store_based_barrier", _C10D, "init_process_group"),
    Pattern(
        "rendezvous",
        r"_(env|tcp|file)_rendezvous_handler|_create_c10d_store",
        r"rendezvous\.py$",
        "init_process_group",
    ),
    Pattern(
        "rendezvous",
        r"init_custom_process_group|stateless_init_process_group|init_weights_update_group",
    ),
    Pattern("rendezvous", r"init_weight_transfer_engine|init_transfer_engine|init_broadcaster"),
    Pattern(
        "rendezvous", r"__init__|ncclCommInitRank", r"pynccl(_wrapper)?\.py$", "ncclCommInitRank"
    ),
    Pattern(
        "rendezvous",
        r"create",
        r"distributed/(stateless_process_group|utils)\.py$",
        "stateless_init_process_group",
    ),
    Pattern(
        "rendezvous",
        r"init_collective_group|meet|_generate_nccl_communicator_key|create_collective_group",
        r"ray/util/collective",
        "init_collective_group",
    ),
    Pattern(
        "rendezvous", r"init_nccl_communicator|init_collective|init_communicator|meet|Rendezvous"
    ),
)

NATIVE_RENDEZVOUS: tuple[Pattern, ...] = (
    Pattern("rendezvous", r"ncclCommSplit|commGetSplitInfo", operation="ncclCommSplit"),
    Pattern(
        "rendezvous",
        r"ncclCommInitRank\w*|bootstrap\w+|c10d::NCCLComm::create",
        operation="ncclCommInitRank",
    ),
    Pattern(
        "rendezvous",
        r"gloo::rendezvous::\w+::connectFullMesh|gloo::\S*createAndConnectAllPairs"
        r"|gloo::transport::\w+::Pair::waitUntilConnected",
        operation="connectFullMesh",
    ),
    Pattern(
        "rendezvous",
        r"c10d::ProcessGroup\w+::(ProcessGroup\w+|eagerConnect\w*)",
        operation="new_group",
    ),
    Pattern(
        "store",
        r"c10d::(TCPStore|PrefixStore|FileStore|HashStore)::(get|wait|doWait|doGet)\w*",
        operation="store.get",
    ),
    Pattern("store", r"c10d::detail::TCPClient::\w+", operation="store.get"),
)
