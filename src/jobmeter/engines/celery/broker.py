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
"""The version of the protocol: incremented when runners and workers of two versions would not understand each other."""

RUN = "jobmeter.run"
"""The Celery task that runs one job."""
BEACON_SECONDS = 1.0
"""How often a worker reports what it has and does."""


def broker_address(option: str | None) -> str:
    """The value of `--broker`, else of `JOBMETER_BROKER`, else a Redis on this machine."""
    return option or os.environ.get("JOBMETER_BROKER") or DEFAULT_BROKER


def make_app(broker: str) -> Celery:
    """The Celery application of workers and runners.

    Raises LaunchError if Celery is not installed, does not know this kind of broker, or lacks a package for it.
    """
    try:
        from celery import Celery
    except ModuleNotFoundError:
        raise LaunchError(f"Celery is not installed. {INSTALL}") from None
    except ImportError as error:
        raise LaunchError(f"Celery cannot be imported: {error}") from None
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
        # This loads the transport by the scheme of the address: it fails if that is unknown, or a package is missing.
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
def translate_errors(app: Celery) -> Iterator[None]:
    """Turn what kombu and its transports raise into a LaunchError of one line."""
    try:
        yield
    except LaunchError:
        raise
    except Exception as error:  # what a transport raises is known only when it is loaded
        if not isinstance(error, broker_errors(app)):
            raise
        raise LaunchError(_explain(shown(app), error)) from None


def broker_errors(app: Celery) -> tuple[type[Exception], ...]:
    """The exceptions that are raised while the broker cannot be used."""
    from kombu.exceptions import OperationalError

    connection = app.connection_for_write()
    return (*connection.connection_errors, *connection.channel_errors, OperationalError, OSError)


_REFUSALS = ("wrongpass", "noauth", "authentication", "access_refused", "invalid password", "username-password")


def _explain(address: str, error: Exception) -> str:
    says = str(error).rstrip(". ") or type(error).__name__
    if any(word in says.lower() for word in _REFUSALS):
        return f"{address}: the broker refuses the password. Put it into the address: redis://:PASSWORD@HOST:6379/0"
    return f"{address}: cannot connect to a broker: {says}. To start Redis: redis-server. Another one: --broker URL"


def task_queue(worker: str) -> str:
    """The name of the queue that only this worker reads."""
    return f"jobmeter.tasks.{worker}"


def reply_queue() -> str:
    """A new name of a queue, for what workers report to one runner."""
    return f"jobmeter.replies.{uuid.uuid4().hex}"


def beacon_exchange() -> Exchange:
    from kombu import Exchange

    return Exchange("jobmeter.beacons", type="fanout", durable=False, delivery_mode="transient")


def make_queue(name: str) -> Queue:
    """A queue that belongs to one process, and expires when it has not been used for a day."""
    from kombu import Queue

    return Queue(name, routing_key=name, durable=False, expires=86400)


def call_worker(app: Celery, worker: str | None, command: str, **arguments: Any) -> None:
    """Send a control command to one worker, or to all. It may get lost: a caller that needs its effect repeats it.

    Raises one of `broker_errors` if the broker cannot be used.
    """
    # Not `app.control.broadcast`, which sends the same: while the broker is away, it tries again for ever.
    mailbox = app.control.mailbox
    destination = None if worker is None else [worker]
    with app.producer_pool.acquire(block=True) as producer:
        producer.publish(
            {"method": command, "arguments": arguments, "destination": destination},
            exchange=mailbox.exchange.name,
            declare=[mailbox.exchange],
            headers={"clock": mailbox.clock.forward()},
            serializer="json",
            retry=True,  # the connection may be one that the broker closed since the last command
            retry_policy=app.conf.task_publish_retry_policy,
        )
