"""The broker: its address, the Celery application, names of queues, and errors in plain words."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from jobmeter.errors import LaunchError

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Exchange, Queue

DEFAULT_BROKER = "redis://localhost:6379/0"
DEFAULT_QUEUE = "jobmeter"

INSTALL = "To install it: pip install 'jobmeter[celery]'"

PROTOCOL = 1
"""Raised when runners and workers of two versions would not understand each other."""

RUN = "jobmeter.run"
"""The Celery task that runs one job."""
BEACON_SECONDS = 1.0
"""How often a worker reports what it has and does."""


def broker_address(option: str | None) -> str:
    """The value of `--broker`, else of `JOBMETER_BROKER`, else a Redis on this machine."""
    return option or os.environ.get("JOBMETER_BROKER") or DEFAULT_BROKER


def make_app(broker: str) -> Celery:
    """The Celery application of workers and runners. LaunchError when Celery is not installed."""
    try:
        from celery import Celery
    except ImportError:
        raise LaunchError(f"Celery is not installed. {INSTALL}") from None
    app = Celery("jobmeter", broker=broker, set_as_current=False)
    app.conf.update(
        broker_connection_retry_on_startup=False,
        broker_connection_timeout=3,
        broker_transport_options={"socket_connect_timeout": 3, "socket_timeout": 10},
        # How jobs end is reported in the replies.
        result_backend=None,
        task_ignore_result=True,
        task_serializer="json",
        accept_content=["json"],
        worker_hijack_root_logger=False,
        worker_enable_remote_control=True,
        # A message is taken out of the queue when its job begins, and never delivered a second time.
        task_acks_late=False,
    )
    kind = broker.partition(":")[0]
    try:
        # The transport is looked up by the beginning of the address; what it lacks shows in its errors.
        broker_errors(app)
    except KeyError:
        raise LaunchError(f"{kind}://…: this is no broker that Celery knows, as redis:// is") from None
    except (ImportError, AttributeError):
        raise LaunchError(f"{kind}://…: a package for this broker is missing. {INSTALL}") from None
    return app


def shown(app: Celery) -> str:
    """The address of the broker without its password."""
    connection = app.connection_for_write()
    return str(connection.as_uri()).replace(":**@", "@" if connection.userid else "", 1)


@contextlib.contextmanager
def in_plain_words(app: Celery) -> Iterator[None]:
    """What kombu and its transports raise, as a LaunchError of one line."""
    try:
        yield
    except LaunchError:
        raise
    except Exception as error:  # what a transport raises is known only when it is loaded
        if not isinstance(error, broker_errors(app)):
            raise
        raise LaunchError(_explain(shown(app), error)) from None


def broker_errors(app: Celery) -> tuple[type[Exception], ...]:
    """What is raised while the broker cannot be used."""
    from kombu.exceptions import OperationalError

    connection = app.connection_for_write()
    return (*connection.connection_errors, *connection.channel_errors, OperationalError, OSError)


_REFUSALS = ("wrongpass", "noauth", "authentication", "access_refused", "invalid password", "username-password")


def _explain(address: str, error: Exception) -> str:
    says = str(error).rstrip(". ") or type(error).__name__
    if any(word in says.lower() for word in _REFUSALS):
        return f"{address}: the broker refuses the password. Put it into the address: redis://:PASSWORD@HOST:6379/0"
    return f"{address}: no broker can be used there: {says}. To start Redis: redis-server. Another one: --broker URL"


def task_queue(worker: str) -> str:
    """The queue that this worker alone reads."""
    return f"jobmeter.tasks.{worker}"


def reply_queue() -> str:
    """A new queue for what workers report to one runner."""
    return f"jobmeter.replies.{uuid.uuid4().hex}"


def beacon_exchange() -> Exchange:
    from kombu import Exchange

    return Exchange("jobmeter.beacons", type="fanout", durable=False, delivery_mode="transient")


def make_queue(name: str) -> Queue:
    """A queue that belongs to one process, and goes when nobody has used it for a day."""
    from kombu import Queue

    return Queue(name, routing_key=name, durable=False, expires=86400)


def call_worker(app: Celery, worker: str | None, command: str, **arguments: Any) -> None:
    """Send a control command to one worker, or to all. It may get lost: whoever needs its effect repeats it."""
    app.control.broadcast(command, arguments=arguments, destination=None if worker is None else [worker])
