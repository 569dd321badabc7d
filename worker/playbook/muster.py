# Reports what a playbook does to file descriptor 4, as one line of JSON an event.
import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: muster
    type: stdout
    short_description: events for muster
    description:
      - Reports what a playbook does as lines of JSON.
"""

MOST = 8192  # characters of one text


def text(value):
    if value is None:
        return ''
    if isinstance(value, bytes):
        value = value.decode('utf-8', 'replace')
    if not isinstance(value, str):
        try:
            value = json.dumps(value, default=str)
        except Exception:
            value = str(value)
    if len(value) > MOST:
        value = value[:MOST] + '...'
    return value


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = 'stdout'
    CALLBACK_NAME = 'muster'

    def _tell(self, event, **more):
        more['event'] = event
        line = (json.dumps(more) + '\n').encode('ascii', 'replace')
        while line:
            line = line[os.write(4, line):]

    def _result(self, status, result, **more):
        said = result._result
        if said.get('changed') and status == 'ok':
            status = 'changed'
        for name in ('msg', 'stdout', 'stderr', 'module_stdout', 'module_stderr', 'exception'):
            if name == 'exception' and (said.get('msg') or said.get('module_stderr')):
                continue
            if said.get(name) not in (None, '', []):
                more[name] = text(said[name])
        if 'diff' in said:
            try:
                more['diff'] = text(self._get_diff(said['diff']))
            except Exception:
                pass
        self._tell('result', status=status, host=result._host.get_name(), **more)

    def _item(self, status, result):
        item = ''
        if not result._result.get('_ansible_no_log'):
            item = text(self._get_item_label(result._result))
        self._result(status, result, item=item, part=True)

    def v2_playbook_on_play_start(self, play):
        self._tell('play', name=text(play.get_name()))

    def _task(self, task):
        self._tell('task', name=text(task.get_name()), action=text(task.action))

    def v2_playbook_on_task_start(self, task, is_conditional):
        self._task(task)

    def v2_playbook_on_handler_task_start(self, task):
        self._task(task)

    def v2_playbook_on_cleanup_task_start(self, task):
        self._task(task)

    def v2_runner_on_ok(self, result):
        self._result('ok', result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._result('ignored' if ignore_errors else 'failed', result)

    def v2_runner_on_skipped(self, result):
        self._result('skipped', result)

    def v2_runner_on_unreachable(self, result):
        self._result('unreachable', result)

    def v2_runner_item_on_ok(self, result):
        self._item('ok', result)

    def v2_runner_item_on_failed(self, result):
        self._item('failed', result)

    def v2_runner_item_on_skipped(self, result):
        self._item('skipped', result)

    def v2_runner_retry(self, result):
        self._result('again', result, part=True)

    def v2_on_file_diff(self, result):
        pass  # a part of the result

    def v2_playbook_on_stats(self, stats):
        for host in sorted(stats.processed.keys()):
            self._tell('stats', host=host, **stats.summarize(host))
