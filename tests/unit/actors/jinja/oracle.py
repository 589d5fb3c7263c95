"""Jinja2 as transformers sets it up for chat templates: what our interpreter must agree with."""

import copy
import datetime
import functools
import json
import warnings

import jinja2
import jinja2.ext
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """The `generation` tag of transformers: renders its body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


@functools.lru_cache
def environment(now):
    """transformers' environment, except that lists and dicts may be changed, as other engines allow."""

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(
            x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
        )

    env = jinja2.sandbox.SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc).replace(tzinfo=None)
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = moment.strftime
    return env


def render(source, context, now):
    """@returns the text, or the exception that Jinja2 raised"""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python remarks on odd constants
            return environment(now).from_string(source).render(**copy.deepcopy(context))
    except Exception as why:  # whatever Python raises for a template is an error of the template
        return why
