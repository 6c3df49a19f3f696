# SPDX-License-Identifier: LGPL-2.1-or-later
"""Optuna: eight processes work on one study."""

import multiprocessing
import warnings

import optuna

URL = "sqlite:///database.sqlite"  #~ URL = "sqlipc://user/optuna-processes?isolation_level=IMMEDIATE"
warnings.simplefilter("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)


def storage():
    return optuna.storages.RDBStorage(URL, engine_kwargs={"connect_args": {"timeout": 600}})


def work(number):
    study = optuna.load_study(study_name="study", storage=storage(), sampler=optuna.samplers.RandomSampler(seed=number))
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2 + trial.suggest_int("n", 0, 3), n_trials=3)


if __name__ == "__main__":
    optuna.create_study(study_name="study", storage=storage())
    processes = [multiprocessing.Process(target=work, args=(number,)) for number in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print([process.exitcode for process in processes])
    trials = optuna.load_study(study_name="study", storage=storage()).trials
    print(len(trials), {trial.state.name for trial in trials}, sorted(trial.number for trial in trials))
    print(sorted(trial.value for trial in trials))
