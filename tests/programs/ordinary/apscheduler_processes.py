# SPDX-License-Identifier: LGPL-2.1-or-later
"""APScheduler: four processes add, change and remove jobs in one store."""

import datetime
import multiprocessing

from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler

URL = "sqlite:///database.sqlite"  #~ URL = "sqlipc://user/apscheduler-processes"
LATER = datetime.datetime(2100, 1, 1, tzinfo=datetime.timezone.utc)


def started():
    store = SQLAlchemyJobStore(url=URL, engine_options={"connect_args": {"timeout": 600}})
    scheduler = BackgroundScheduler(jobstores={"default": store}, timezone="UTC")
    scheduler.start(paused=True)
    return scheduler


def work(number):
    scheduler = started()
    for i in range(10):
        scheduler.add_job(print, "date", run_date=LATER, args=[number, i], id=f"{number}-{i}")
    for i in range(0, 10, 2):
        scheduler.modify_job(f"{number}-{i}", name="changed")
    scheduler.remove_job(f"{number}-9")
    scheduler.shutdown()


if __name__ == "__main__":
    started().shutdown()
    processes = [multiprocessing.Process(target=work, args=(number,)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print([process.exitcode for process in processes])
    store = started()
    print(sorted((job.id, job.name, job.args, str(job.next_run_time)) for job in store.get_jobs()))
    store.remove_all_jobs()
    print(store.get_jobs())
    store.shutdown()
