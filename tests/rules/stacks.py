"""Stacks that many cases share, as py-spy prints them."""

GLOO_BARRIER = """
barrier (torch/distributed/distributed_c10d.py:4818)
wrapper (torch/distributed/c10d_logger.py:81)
new_function (miles/utils/reloadable_process_group.py:54)
update_weights (miles/backends/megatron_utils/update_weight/update_weight_from_tensor.py:314)
update_weights (miles/backends/megatron_utils/actor.py:747)
"""

RAY_GET = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
wrapper (ray/_private/client_mode_hook.py:104)
_pause_and_prepare_engines (miles/backends/megatron_utils/update_weight/mixin.py:316)
update_weights (miles/backends/megatron_utils/update_weight/mixin.py:353)
update_weights (miles/backends/megatron_utils/actor.py:747)
"""

SEND_CHUNK = """
get_objects (ray/_private/worker.py:958)
get (ray/_private/worker.py:2858)
_send_to_colocated_engine (slime/backends/megatron_utils/update_weight/tensor.py:307)
update_weights (slime/backends/megatron_utils/update_weight/update_weight_from_tensor.py:290)
update_weights (slime/backends/megatron_utils/actor.py:574)
"""

HTTP_POST = """
readinto (socket.py:720)
_read_status (http/client.py:292)
getresponse (http/client.py:1430)
urlopen (urllib3/connectionpool.py:787)
post (requests/api.py:115)
update_named_param (trl/extras/vllm_client.py:312)
sync_weights (trl/generation/vllm_generation.py:201)
training_step (trl/trainer/grpo_trainer.py:1056)
"""

HASH_READ = """
0x7f0c51c7d1aa (libcuda.so.580.82.07)
cuStreamSynchronize (libcuda.so.580.82.07)
at::native::_local_scalar_dense_cuda (libtorch_cuda.so)
THPVariable_item (libtorch_python.so)
_compute_hash_tensor (miles/utils/tensor_backper.py:118)
_compute_hash_dict (miles/utils/tensor_backper.py:106)
get (miles/utils/tensor_backper.py:91)
<lambda> (miles/backends/megatron_utils/actor.py:255)
update_weights (miles/backends/megatron_utils/update_weight/update_weight_from_tensor.py:263)
update_weights (miles/backends/megatron_utils/actor.py:747)
"""

SAVE_COPY = """
synchronize (torch/cuda/__init__.py:1083)
preload_tensors (megatron/core/dist_checkpointing/strategies/filesystem_async.py:233)
save (megatron/core/dist_checkpointing/strategies/torch.py:633)
save_checkpoint (megatron/training/checkpointing.py:601)
save_model (slime/backends/megatron_utils/actor.py:525)
"""

SAVE_GATHER = """
all_gather (torch/distributed/distributed_c10d.py:3871)
gather_object (torch/distributed/distributed_c10d.py:3181)
wrapper (torch/distributed/c10d_logger.py:81)
save (megatron/core/dist_checkpointing/strategies/torch.py:634)
save_checkpoint (megatron/training/checkpointing.py:601)
save_model (slime/backends/megatron_utils/actor.py:525)
"""

FULL_TENSOR = """
wait_tensor (torch/distributed/_functional_collectives.py:142)
redistribute_local_tensor (torch/distributed/tensor/_redistribute.py:204)
full_tensor (torch/distributed/tensor/_api.py:594)
_materialize_bucket (openrlhf/trainer/ray/ppo_actor.py:268)
broadcast_to_vllm (openrlhf/trainer/ray/ppo_actor.py:241)
"""

SCHEDULER_IDLE = """
recv_requests (sglang/srt/managers/scheduler.py:1201)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
run_scheduler_process (sglang/srt/managers/scheduler.py:3012)
"""

SCHEDULER_UPDATE_BARRIER = """
barrier (torch/distributed/distributed_c10d.py:4818)
wrapper (torch/distributed/c10d_logger.py:81)
update_weights_from_tensor (sglang/srt/managers/scheduler_update_weights_mixin.py:104)
process_input_requests (sglang/srt/managers/scheduler.py:1288)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""

SCHEDULER_RECEIVE = """
synchronize (torch/cuda/__init__.py:1083)
update_weights_from_distributed (sglang/srt/model_executor/model_runner.py:1158)
update_weights_from_distributed (sglang/srt/managers/tp_worker.py:298)
process_input_requests (sglang/srt/managers/scheduler.py:1288)
event_loop_overlap (sglang/srt/managers/scheduler.py:1146)
"""

VLLM_IDLE = """
acquire_read (vllm/distributed/device_communicators/shm_broadcast.py:574)
dequeue (vllm/distributed/device_communicators/shm_broadcast.py:651)
worker_busy_loop (vllm/v1/executor/multiproc_executor.py:808)
worker_main (vllm/v1/executor/multiproc_executor.py:749)
"""

VLLM_JOIN = """
ncclCommInitRank (vllm/distributed/device_communicators/pynccl_wrapper.py:394)
__init__ (vllm/distributed/device_communicators/pynccl.py:141)
stateless_init_process_group (vllm/distributed/weight_transfer/nccl_engine.py:361)
init_weight_transfer_engine (vllm/v1/worker/gpu_worker.py:988)
worker_busy_loop (vllm/v1/executor/multiproc_executor.py:822)
"""

VLLM_STEP = """
synchronize (torch/cuda/streams.py:231)
_to_list (vllm/v1/worker/gpu_model_runner.py:5127)
_bookkeeping_sync (vllm/v1/worker/gpu_model_runner.py:2744)
sample_tokens (vllm/v1/worker/gpu_worker.py:581)
worker_busy_loop (vllm/v1/executor/multiproc_executor.py:822)
"""

TRAINER_JOIN = """
ncclCommInitRank (vllm/distributed/device_communicators/pynccl_wrapper.py:394)
__init__ (vllm/distributed/device_communicators/pynccl.py:141)
stateless_init_process_group (openrlhf/utils/distributed_util.py:44)
_init_vllm_sync_group (openrlhf/trainer/ray/ppo_actor.py:160)
__init__ (openrlhf/trainer/ray/ppo_actor.py:101)
"""

NEW_GROUP = """
connectFullMesh (libtorch_cpu.so)
gloo::rendezvous::Context::connectFullMesh (libtorch_cpu.so)
c10d::ProcessGroupGloo::ProcessGroupGloo (libtorch_cpu.so)
_new_process_group_helper (torch/distributed/distributed_c10d.py:1996)
new_group (torch/distributed/distributed_c10d.py:5118)
build_groups (train.py:58)
"""

FILE_POLL = """
sync_wait_for_path (prime_rl/utils/pathing.py:182)
_wait_for_nccl_ready (prime_rl/transports/weights/nccl.py:244)
broadcast_weights (prime_rl/transports/weights/nccl.py:205)
train (prime_rl/trainer/rl/train.py:245)
"""

TRITON_LLIR = """
make_llir (triton/backends/nvidia/compiler.py:352)
compile (triton/compiler/compiler.py:322)
run (triton/runtime/jit.py:569)
forward (fla/ops/gated_delta_rule/chunk.py:181)
compute_log_prob (miles/backends/megatron_utils/actor.py:352)
"""

TRITON_CUBIN = """
_try_wait (subprocess.py:2011)
run (subprocess.py:556)
make_cubin (triton/backends/nvidia/compiler.py:437)
compile (triton/compiler/compiler.py:322)
run (triton/runtime/jit.py:569)
backward (fla/ops/gated_delta_rule/chunk.py:210)
compute_log_prob (miles/backends/megatron_utils/actor.py:352)
"""

RECV_FORWARD = """
synchronize (torch/cuda/__init__.py:1083)
_communicate (megatron/core/pipeline_parallel/p2p_communication.py:389)
recv_forward (megatron/core/pipeline_parallel/p2p_communication.py:467)
compute_log_prob (miles/backends/megatron_utils/actor.py:352)
"""

CHECKPOINT_READ = """
read (torch/distributed/checkpoint/filesystem.py:150)
read_data (torch/distributed/checkpoint/filesystem.py:1012)
load_checkpoint (megatron/training/checkpointing.py:1402)
init (vime/backends/megatron_utils/actor.py:103)
"""

CHECKPOINT_BARRIER = """
barrier (torch/distributed/distributed_c10d.py:4818)
load_checkpoint (megatron/training/checkpointing.py:1688)
init (vime/backends/megatron_utils/actor.py:103)
"""

BACKWARD = """
_engine_run_backward (torch/autograd/graph.py:829)
backward (torch/_tensor.py:625)
train_step (train.py:214)
main (train.py:301)
"""
