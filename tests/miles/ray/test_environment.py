import os

from miles.ray.environment import actor_environment


def test_the_watchdogs_variables_reach_the_actors_and_others_do_not():
    driver = {"MILES_WATCHDOG": "1", "MILES_WATCHDOG_STALL_AFTER": "5", "MASTER_ADDR": "10.0.0.1"}

    given = actor_environment(driver)

    assert given == {
        "MILES_WATCHDOG": "1",
        "MILES_WATCHDOG_STALL_AFTER": "5",
        "OMP_NUM_THREADS": "1",
    }


def test_a_relative_report_folder_means_the_drivers():
    given = actor_environment({"MILES_WATCHDOG_DIR": "reports"})

    assert given["MILES_WATCHDOG_DIR"] == os.path.join(os.getcwd(), "reports")


def test_a_given_number_of_threads_is_kept():
    assert actor_environment({"OMP_NUM_THREADS": "8"})["OMP_NUM_THREADS"] == "8"
