"""Small templates, each for one construct or corner of the language."""

CONTEXT = {
    "n": 7,
    "zero": 0,
    "neg": -3,
    "f": 2.5,
    "s": "Hello World",
    "e": "",
    "u": "Grüße, 世界 🙂",
    "t": True,
    "no": False,
    "nil": None,
    "l": [3, 1, 2],
    "w": ["b", "A", "c", "a"],
    "empty": [],
    "d": {"b": 1, "a": 2, "items": "shadow", "0": "zero"},
    "users": [
        {"name": "Ann", "age": 30, "on": True, "tags": ["x"]},
        {"name": "bob", "age": 25, "on": False, "tags": []},
        {"name": "Cid", "age": 35, "on": True},
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi <b>&'\"</b>"},
        {"role": "assistant", "content": "Hello\nthere", "tool_calls": [{"function": {"name": "f", "arguments": {"x": 1}}}]},
    ],
    "nested": {"a": {"b": {"c": [1, {"d": "deep"}]}}},
}

PRINTING = """
{{ 1 }} {{ -1 }} {{ 1.0 }} {{ 1.5 }} {{ 1e16 }} {{ 1e15 }} {{ 1e-4 }} {{ 1e-5 }} {{ 123456789.125 }} {{ 0.1 + 0.2 }} {{ 1e300 * 1e10 }} {{ -0.0 }}
{{ true }} {{ false }} {{ none }} {{ True }} {{ False }} {{ None }} {{ t }} {{ nil }} {{ missing }}
{{ [] }} {{ [1] }} {{ [1, 'a', "b'c", 'd"e', 'f"\\'g', none, true, 1.5, [2], {}] }}
{{ () }} {{ (1,) }} {{ (1, 2) }} {{ 1, 2 }} {{ ('a',) }}
{{ {} }} {{ {'a': 1} }} {{ {'a': {'b': [1]}, 2: none, 1.5: true, none: 'x'} }}
{{ ['\\n\\t\\r\\\\', 'é', '\\x00\\x7f\\x80\\xa0', '\\u200b', '\\U0001F642', '\\u2028'] }}
{{ u }} {{ [u] }} {{ users }} {{ d }} {{ nested }}
{{ range(3) }} {{ range(1, 5) }} {{ range(5, 1, -2) }} {{ d.keys() }} {{ d.values() }}
{{ [missing] }} {{ {'a': missing} }}
{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1_000 }} {{ 1_0.5_0 }} {{ 0 }} {{ 00 }} {{ 1E3 }} {{ 1.5e-3 }}
{{ 'a' 'b' "c" }}
{{ "\\x41\\u00e9\\101\\q\\'" }} {{ 'a\\
b' }}
{{ 12345678901234 }} {{ 9223372036854775807 }} {{ -9223372036854775807 }}
{{ namespace(a=1, b='x') }}
"""

OPERATORS = """
{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 - 2 - 1 }} {{ 2 ** 3 }} {{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }} {{ 2 ** 0.5 }} {{ 0 ** 0 }}
{{ 7 / 2 }} {{ 6 / 2 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 7.5 % -2 }} {{ 0.0 // 1 }} {{ -1.0 // 3 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ 1 % 0 }}
{{ 1.0 % 0 }}
{{ 0 ** -1 }}
{{ true + true }} {{ true * 3 }} {{ -true }} {{ +true }} {{ true / 2 }} {{ 5 + 1.5 }}
{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 3 * 'ab' }} {{ 'a' * 0 }} {{ 'a' * -1 }} {{ [1] + [2] }} {{ [1, 2] * 2 }} {{ (1,) + (2,) }} {{ 2 * [0] }}
{{ 'a' + 1 }}
{{ 1 + 'a' }}
{{ [1] + (2,) }}
{{ [] + missing }}
{{ missing + 1 }}
{{ 1 - missing }}
{{ none + 1 }}
{{ 'a' - 'b' }}
{{ -'a' }}
{{ -missing }}
{{ {} + {} }}
{{ 'a' ~ 1 ~ none ~ true ~ 1.5 ~ missing ~ [1] }} {{ 1 ~ 2 + 3 }} {{ 1 + 2 ~ 3 }} {{ 'x' ~ 2 * 3 }}
{{ 1 == 1.0 }} {{ 1 == true }} {{ 'a' == 'a' }} {{ [1, 2] == [1, 2] }} {{ (1,) == [1] }} {{ {'a': 1} == {'a': 1.0} }} {{ none == false }} {{ missing == missing2 }} {{ missing == none }} {{ '' == missing }}
{{ 1 != 2 }} {{ 1 < 2 }} {{ 2 <= 2 }} {{ 3 > 2 }} {{ 2 >= 3 }} {{ 'a' < 'b' }} {{ 'a' < 'B' }} {{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ 1 < 1.5 }} {{ 'é' > 'z' }}
{{ 1 < 'a' }}
{{ none < 1 }}
{{ missing < 1 }}
{{ [1] < ['a'] }}
{{ {} < {} }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 1 }} {{ 1 < 3 < 2 }} {{ 1 == 1 == 1 }} {{ 3 > 2 > 1 != 0 }}
{{ 1 in [1, 2] }} {{ 3 not in [1, 2] }} {{ 'a' in 'cat' }} {{ 'x' not in 'cat' }} {{ '' in 'a' }} {{ 'b' in d }} {{ 'q' in d }} {{ 2 in (1, 2) }} {{ 1.0 in [1] }} {{ 2 in range(3) }} {{ 'a' in missing }} {{ not 'a' in 'b' }} {{ none in [none] }}
{{ 1 in 'a' }}
{{ 1 in 5 }}
{{ 'a' in none }}
{{ [] in d }}
{{ true and false }} {{ true or false }} {{ not true }} {{ 1 and 2 }} {{ 0 and 2 }} {{ 0 or 'x' }} {{ '' or [] or none }} {{ 1 and 2 and 3 }} {{ not not 1 }} {{ not 1 == 2 }} {{ 1 or 1 / 0 }} {{ 0 and 1 / 0 }} {{ true or false and false }}
{{ 'y' if t else 'n' }} {{ 'y' if no else 'n' }} {{ 'y' if no }}|{{ 'a' if no else 'b' if no else 'c' }} {{ ('a' if t) ~ 'z' }} {{ 1 if 2 if 0 else 0 else 3 }}
{{ -n|abs }} {{ (-n)|abs }} {{ -3 + 5|abs }} {{ 2 * 3|string ~ 'x' }} {{ not t|string }} {{ 1 + [1, 2]|length }} {{ -d.b }} {{ +f }} {{ - - 3 }} {{ -2.5|round|abs }}
{{ '%s and %s' % ('a', 1) }} {{ '%d%%' % 5 }} {{ '%5.2f|%-6s|%06d|%+d|% d' % (3.14159, 'ab', 42, 7, 7) }} {{ '%x %X %o %#x %e %g %G' % (255, 255, 8, 255, 12345.678, 0.0001, 1e20) }} {{ '%r' % 'a' }} {{ '%s' % none }} {{ '%s' % [1] }} {{ '%(a)s-%(b)d' % {'a': 'x', 'b': 3} }} {{ '%*d' % (5, 3) }} {{ '%.3s' % 'abcdef' }} {{ '%c%c' % (65, 'b') }} {{ '%i' % 3.9 }} {{ '%s' % missing }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % ('a', 'b') }}
{{ 'a' % 1 }}
{{ '%q' % 1 }}
{{ 'a' % missing }} {{ 'a' % l }} {{ 'a' % d }} {{ 'a' % range(2) }}
{{ 'a' % 'b' }}
{{ 'a' % d.keys() }}
{{ '%d' % missing }}
{{ '%(a)s' % 1 }}
{{ '%' % 1 }}
{{ '%5s|%-5s|%05s' % ('é', 'é', 'é') }} {{ '%.0f %.1f %5.0f' % (0.5, 0.25, 2.5) }} {{ '%10.3e|%-12g|' % (1234.5, 0.5) }} {{ '%5d|%-5d|%+5d|%05d' % (-3, -3, 3, -3) }} {{ '%.3d' % 5 }} {{ '%s' % {'a': 1} }} {{ '%s' % (1,) }} {{ '%f' % true }} {{ '%x' % -255 }} {{ '%#o' % 8 }} {{ '%5%|' % () }}
"""

ACCESS = """
{{ d.b }} {{ d['b'] }} {{ d.zzz }} {{ d['zzz'] }}
{{ d['items'] }} {{ d[0] }} {{ d['0'] }} {{ d.get('b') }} {{ d.get('q') }} {{ d.get('q', 5) }}
{{ l[0] }} {{ l[-1] }} {{ l[9] }} {{ l[-9] }} {{ l.0 }} {{ l['0'] }} {{ l[true] }} {{ l[1.0] }} {{ l['x'] }} {{ l.x }}
{{ s[0] }} {{ s[-1] }} {{ s[99] }} {{ u[7] }} {{ u[-1] }} {{ (1, 2)[1] }} {{ range(5)[2] }} {{ range(5)[-1] }} {{ range(5)[9] }}
{{ nested.a.b.c[1].d }} {{ nested['a']['b']['c'][0] }} {{ nested.a.x }} {{ nested.a['x'] is defined }}
{{ missing.x }}
{{ nested.a.x.y }}
{{ missing[0] }}
{{ missing() }}
{{ nil.x }} {{ n.x }} {{ nil[0] }} {{ n['x'] }} {{ t.x }}
{{ nil() }}
{{ s() }}
{{ d.b() }}
{{ l[1:] }} {{ l[:1] }} {{ l[:] }} {{ l[::-1] }} {{ l[::2] }} {{ l[-2:] }} {{ l[5:] }} {{ l[2:1] }} {{ l[-1:0:-1] }} {{ l[0:3:2] }} {{ l[none:2] }} {{ l[:99] }} {{ l[-99:99] }} {{ l[1::-1] }}
{{ s[1:4] }} {{ s[::-1] }} {{ s[:5] }} {{ s[-5:] }} {{ u[1:8] }} {{ u[::-1] }} {{ u[::3] }} {{ s[3:1] }} {{ (1, 2, 3)[1:] }} {{ e[1:] }}
{{ l[::0] }}
{{ n[1:] }}
{{ missing[1:] }}
{{ l['a':] }}
{{ range(9)[1:] }} {{ range(9)[2:7:2] }} {{ range(9)[::-1] }} {{ range(1, 9, 2)[1:3] }} {{ range(9)[5:2] }} {{ range(3)[9:] }} {{ range(9)[::-2]|list }}
{{ d[1:2] }}
{{ users[0].name }} {{ users[0]['name'] }} {{ users[-1].tags }} {{ users[-1].tags is defined }} {{ users.0.age }}
{{ messages[0]['role'] }} {{ messages[2].tool_calls[0].function.arguments.x }}
{{ {'a': 1}.a }} {{ [1, 2].0 }} {{ 'abc'.upper() }} {{ 'abc'[1] }} {{ (n).x is undefined }} {{ {'a': {'b': 2}}['a']['b'] }} {{ [[1, 2], [3]][0][1] }}
{{ d['b' ~ ''] }} {{ d[s[0:0] ~ 'a'] }} {{ l[n - 6] }} {{ d[none] }} {{ {none: 1}[none] }} {{ {1: 'x'}[1.0] }} {{ {true: 'x'}[1] }} {{ {(1, 2): 'x'}[(1, 2)] }}
{{ s.__class__ }} {{ d.__class__ is defined }} {{ l['__len__'] is defined }}
{{ {[]: 1} }}
{{ d[[]] }}
"""

METHODS = """
{{ ' a '.strip() }}|{{ ' a '.lstrip() }}|{{ ' a '.rstrip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcba'.strip('ab') }}|{{ '\\u3000a\\xa0'.strip() }}|{{ 'a\\n'.rstrip('\\n') }}|{{ ' a '.strip(none) }}
{{ 'a b  c'.split() }} {{ ' a b '.split(' ') }} {{ 'a,b,c'.split(',', 1) }} {{ 'a b c '.split(maxsplit=1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a,b'.split(sep=',') }} {{ 'aXXbXXc'.split('XX') }} {{ '  a  b  '.split(none, 1) }} {{ 'a\\tb\\nc'.split() }}
{{ 'a b  c'.rsplit() }} {{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ ' a b c '.rsplit(maxsplit=2) }} {{ ''.rsplit(',') }}
{{ 'a'.split('') }}
{{ 'a'.split(1) }}
{{ 'a\\nb\\r\\nc\\rd'.splitlines() }} {{ 'a\\n'.splitlines() }} {{ ''.splitlines() }} {{ '\\n\\n'.splitlines() }} {{ 'a\\nb'.splitlines(true) }} {{ 'a\\x0bb\\x1cc\\u2028d'.splitlines() }}
{{ 'abc'.startswith('a') }} {{ 'abc'.startswith(('x', 'ab')) }} {{ 'abc'.endswith('bc') }} {{ 'abc'.startswith('b', 1) }} {{ 'abc'.startswith('') }} {{ 'abc'.endswith(('a', 'b')) }} {{ 'abc'.startswith('c', -1) }} {{ 'abc'.endswith('b', 0, 2) }} {{ 'abc'.startswith('', 5) }}
{{ 'abc'.startswith(1) }}
{{ 'abc'.startswith(['a']) }}
{{ 'Hello'.upper() }} {{ 'Hello'.lower() }} {{ "hello world's end".title() }} {{ 'hELLO'.capitalize() }} {{ 'hELLO'.swapcase() }} {{ 'straße ǆ'.upper() }} {{ 'ΑΣ Σ'.lower() }} {{ 'ﬁ'.title() }} {{ u.upper() }}
{{ 'aXbXc'.replace('X', '-') }} {{ 'aaa'.replace('a', 'b', 2) }} {{ 'abc'.replace('', '-') }} {{ 'aaa'.replace('aa', 'b') }} {{ 'é'.replace('', '.') }} {{ 'abc'.replace('', '-', 2) }} {{ ''.replace('', 'x') }} {{ 'abc'.replace('b', '', 0) }} {{ 'aaa'.replace('a', 'b', -1) }}
{{ 'abcabc'.find('c') }} {{ 'abc'.find('x') }} {{ 'abcabc'.rfind('c') }} {{ 'abcabc'.find('c', 3) }} {{ 'ééa'.find('a') }} {{ 'abc'.find('') }} {{ 'abc'.rfind('') }} {{ 'abc'.find('', 9) }} {{ 'abc'.index('b') }} {{ 'abcabc'.rindex('b') }} {{ 'abc'.find('b', -1) }}
{{ 'abc'.index('x') }}
{{ 'aXaXa'.count('X') }} {{ 'aaa'.count('aa') }} {{ 'abc'.count('') }} {{ 'é'.count('') }} {{ 'aXaXa'.count('X', 2) }} {{ 'abc'.count('', 9) }}
{{ ','.join(['a', 'b']) }} {{ ''.join([]) }} {{ '-'.join('abc') }} {{ ', '.join(d) }} {{ ','.join(w|map('upper')) }}
{{ ','.join([1]) }}
{{ ','.join(5) }}
{{ '123'.isdigit() }} {{ '12a'.isdigit() }} {{ ''.isdigit() }} {{ '²'.isdigit() }} {{ '½'.isdigit() }} {{ '½'.isnumeric() }} {{ '٣'.isdecimal() }} {{ 'abc'.isalpha() }} {{ 'aé'.isalpha() }} {{ 'a1'.isalnum() }} {{ 'a_'.isalnum() }} {{ ' \\t'.isspace() }} {{ ''.isspace() }} {{ 'ABC'.isupper() }} {{ 'abc1'.islower() }} {{ 'Abc'.islower() }} {{ '1'.islower() }} {{ 'ªb'.islower() }}
{{ 'abc'.ljust(5) }}| {{ 'abc'.rjust(5, '.') }} {{ 'abc'.center(6, '*') }} {{ 'abc'.center(8) }}| {{ 'ab'.center(5, '*') }} {{ '42'.zfill(5) }} {{ '-42'.zfill(5) }} {{ '+4'.zfill(1) }} {{ 'é'.ljust(3, '世') }}
{{ 'abc'.ljust(5, 'ab') }}
{{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('-') }} {{ 'abc'.rpartition('-') }}
{{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ 'abc'.removeprefix('x') }} {{ 'abc'.removesuffix('') }}
{{ '{} {}'.format('a', 1) }} {{ '{1}{0}'.format('a', 'b') }} {{ '{x}'.format(x=3) }} {{ '{{}}'.format() }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}'.format('a', 'b', 'c', 'd') }} {{ '{:05d} {:+d} {: d} {:x} {:#x} {:b} {:o} {:,}'.format(42, 42, 42, 255, 255, 5, 8, 1234567) }} {{ '{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.00001, 0.25) }} {{ '{!r} {!s}'.format('a', 'b') }} {{ '{0[a]} {0[b][0]} {1[0]}'.format({'a': 1, 'b': [2]}, [3]) }} {{ '{:{}}|'.format('a', 4) }} {{ '{:.3}'.format('abcdef') }} {{ '{}'.format(none) }} {{ '{}'.format([1]) }} {{ '{:5}|{:5}|'.format(3, 'a') }} {{ '{:5}|'.format(true) }} {{ '{}'.format(1.0) }} {{ '{:.3}'.format(1234.5) }} {{ '{:_}'.format(1234567) }} {{ '{:010,}'.format(1234) }} {{ '{:c}'.format(65) }} {{ '{:,.2f}'.format(12345.678) }} {{ '{:E} {:G} {:F}'.format(1.5, 1e-7, 2.0) }} {{ '{:=+6}'.format(3) }} {{ '{:>+6.1f}'.format(2.25) }} {{ '{0}{0}'.format('z') }}
{{ '{}'.format() }}
{{ '{x}'.format() }}
{{ '{'.format() }}
{{ '}'.format() }}
{{ '{:d}'.format('a') }}
{{ '{:s}'.format(1) }}
{{ '{0}{}'.format(1, 2) }}
{{ '{:q}'.format(1) }}
{{ '{:5}'.format(none) }}
{% set x = [1] %}{{ x.append(2) }} {{ x }} {% set y = x.extend([3, 4]) %}{{ x }} {{ x.pop() }} {{ x.pop(0) }} {{ x }} {% set y = x.insert(0, 9) %}{{ x }} {{ x.index(3) }} {{ x.count(3) }} {% set y = x.remove(3) %}{{ x }} {% set y = x.reverse() %}{{ x }} {% set y = x.sort() %}{{ x }} {% set y = x.clear() %}{{ x }}
{% set x = [3, 1, 2] %}{% set y = x.sort(reverse=true) %}{{ x }} {% set z = x.copy() %}{% set y = z.append(0) %}{{ x }}{{ z }} {% set y = x.insert(-1, 7) %}{{ x }} {% set y = x.insert(99, 8) %}{{ x }}
{{ [].pop() }}
{{ [1].remove(2) }}
{{ [1].index(2) }}
{% set x = {'a': 1} %}{{ x.update({'b': 2}) }} {{ x }} {% set y = x.update(c=3) %}{{ x }} {{ x.pop('a') }} {{ x.pop('q', 0) }} {{ x }} {{ x.setdefault('z', 5) }} {{ x.setdefault('b', 9) }} {{ x }} {{ x.popitem() }} {{ x }} {% set y = x.clear() %}{{ x }}
{{ {'a': 1}.pop('b') }}
{{ {}.popitem() }}
{{ {'a': 1}.items() }}|{{ {'a': 1}.items()|list }} {{ d.keys()|list }} {{ d.values()|list }} {{ d.copy() == d }} {{ 'a' in d.keys() }} {{ ('a', 2) in d.items() }} {{ d.items()|length }} {{ {'a': 1}.keys() == {'a': 2}.keys() }}
{{ (1, 2, 1).count(1) }} {{ (1, 2, 1).index(2) }}
{{ 'a'.nosuch }} {{ [].nosuch is defined }}
{{ 'a'.nosuch() }}
{{ 'a'.upper(1) }}
{{ 'a'.strip(1) }}
{{ 'a'.replace('a') }}
{% set up = s.upper %}{{ up() }} {{ d['get']('b') }} {{ (s.split)(' ') }}
"""

FILTERS = """
{{ ' a '|trim }}|{{ 'xax'|trim('x') }}|{{ 5|trim }}|{{ '\\n a\\t'|trim }}|{{ ' a '|trim(chars=' ') }}
{{ 'aé'|upper }} {{ 'AÉ'|lower }} {{ "hello there's (big) [x] {y} <z> a-b"|title }} {{ 'hELLO wORLD'|capitalize }} {{ 5|upper }} {{ none|upper }} {{ missing|upper }}|{{ 'foo\\tbar ﬁx'|title }}
{{ 'a-b'|replace('-', '+') }} {{ 'aaa'|replace('a', 'b', 2) }} {{ 5|replace(5, 6) }} {{ 'aaa'|replace('a', 'b', count=1) }} {{ 'x'|replace(old='x', new='y') }}
{{ [1, 2]|join }} {{ [1, 2]|join('-') }} {{ [1, none, 'a', missing, true]|join(', ') }} {{ 'abc'|join('.') }} {{ users|join(', ', attribute='name') }} {{ d|join(',') }} {{ []|join('x') }} {{ [1, 2]|join(0) }} {{ l|join(d=':') }} {{ missing|join }}|
{{ 5|join }}
{{ [1, 2]|length }} {{ 'é世'|length }} {{ d|count }} {{ ()|length }} {{ missing|length }} {{ range(4)|length }}
{{ 5|length }}
{{ none|length }}
{{ missing|default('x') }} {{ nil|default('x') }} {{ nil|default('x', true) }} {{ ''|d('y', boolean=true) }} {{ 0|default(5) }} {{ missing|d }}| {{ d.q|default(d.b) }} {{ missing|default(default_value='z') }} {{ nested.a.q|default('none') }} {{ e|default('q', true) }}
{{ l|first }} {{ l|last }} {{ s|first }} {{ s|last }} {{ []|first }}|{{ []|last }}|{{ ''|first }}|{{ d|first }} {{ d|last }} {{ (1, 2)|last }} {{ missing|last }} {{ range(3)|first }} {{ range(3)|last }} {{ missing|first }}|{{ u|last }} {{ d.items()|first }} {{ d.values()|last }}
{{ 5|first }}
{{ 5|last }}
{{ l|map('string')|last }}
{{ 'abc'|list }} {{ d|list }} {{ (1, 2)|list }} {{ range(3)|list }} {{ missing|list }} {{ u|list }} {{ d.items()|list }}
{{ 5|list }}
{{ d|items|list }} {{ missing|items|list }}
{{ l|items|list }}
{{ w|map('upper')|list }} {{ users|map(attribute='name')|list }} {{ users|map(attribute='tags', default=[])|list }} {{ users|map(attribute='tags.0', default='-')|list }} {{ w|map('replace', 'a', 'z')|list }} {{ [[1, 2], [3]]|map('length')|list }} {{ [[1, 2], [3]]|map(attribute=0)|list }} {{ []|map('nosuch')|list }} {{ [1.5, 2.5]|map('round')|list }} {{ ['a=1']|map('split', '=')|list }}
{{ users|map(attribute='tags')|list }} {{ users|map(attribute='nosuch')|map('default', 'x')|list }}
{{ users|map(attribute='tags.0.x')|list }}
{{ l|map|list }}
{{ l|map('nosuch')|list }}
{{ l|select('odd')|list }} {{ l|select|list }} {{ [0, 1, '', 'a', none]|select|list }} {{ l|reject('odd')|list }} {{ [0, 1]|reject|list }} {{ l|select('gt', 1)|list }} {{ l|select('in', [1, 2])|list }} {{ w|select('equalto', 'a')|list }} {{ l|select('divisibleby', 2)|list }} {{ l|select('<=', 2)|list }} {{ ['a', 1]|select('string')|list }} {{ [missing, 1]|select('defined')|list }}
{{ users|selectattr('on')|map(attribute='name')|list }} {{ users|rejectattr('on')|map(attribute='name')|list }} {{ users|selectattr('age', 'gt', 26)|map(attribute='name')|list }} {{ users|selectattr('name', 'equalto', 'bob')|list }} {{ users|selectattr('tags')|list|length }} {{ users|selectattr('tags', 'defined')|list|length }} {{ users|rejectattr('age', '==', 25)|list|length }} {{ messages|selectattr('role', '==', 'user')|first }} {{ messages|selectattr('role', 'in', ['system', 'user'])|list|length }} {{ users|selectattr('nosuch')|list }}
{{ users|selectattr|list }}
{{ users|selectattr('a', 'nosuch')|list }}
{{ l|select('gt', 'a')|list }}
{{ (l|select('odd')) is string }} {% if []|select %}yes{% else %}no{% endif %} {% set g = l|select('odd') %}{{ g|list }}{{ g|list }} {{ (l|select('odd'))[0] is defined }} {{ (l|map('string')) is iterable }} {{ (l|map('string')) is sequence }} {{ (l|select('odd'))|first }} {{ 3 in (l|select('odd')) }}
{{ l|select('odd')|length }}
{{ 5|string }} {{ none|string }} {{ [1]|string }} {{ 1.5|string|length }} {{ true|string }} {{ missing|string }}|
{{ '42'|int }} {{ 'x'|int }} {{ 'x'|int(7) }} {{ '42.9'|int }} {{ 3.99|int }} {{ -3.99|int }} {{ none|int }} {{ true|int }} {{ ' 42 '|int }} {{ '1_000'|int }} {{ 'ff'|int(0, 16) }} {{ '0xff'|int(base=16) }} {{ '0b11'|int(0, 2) }} {{ '+5'|int }} {{ '-5'|int }} {{ '1e3'|int }} {{ ''|int }} {{ '_1'|int }} {{ []|int }} {{ 'nan'|int(3) }} {{ '5.'|int }} {{ '٣'|int(9) is integer }}
{{ missing|int }}
{{ '1.5'|float }} {{ 'x'|float }} {{ 'x'|float(2.5) }} {{ 3|float }} {{ none|float }} {{ '1e5'|float }} {{ 'inf'|float }} {{ '-Infinity'|float }} {{ 'nan'|float }} {{ '1_0.5'|float }} {{ ' 2 '|float }} {{ '.5'|float }} {{ '5.'|float }} {{ '1e400'|float }} {{ true|float }} {{ '1e-400'|float }} {{ '0x10'|float }} {{ '--1'|float }}
{{ missing|float }}
{{ -5|abs }} {{ -2.5|abs }} {{ true|abs }} {{ 0|abs }}
{{ 'a'|abs }}
{{ missing|abs }}
{{ l|sort }} {{ l|sort(reverse=true) }} {{ w|sort }} {{ w|sort(case_sensitive=true) }} {{ w|sort(true) }} {{ users|sort(attribute='age')|map(attribute='name')|list }} {{ users|sort(attribute='on,name')|map(attribute='name')|list }} {{ users|sort(attribute='name', reverse=true)|map(attribute='name')|list }} {{ 'cab'|sort }} {{ d|sort }} {{ []|sort }} {{ [none, none]|sort }} {{ [[2], [1]]|sort }} {{ [1.5, 1, true]|sort }} {{ [(1, 'b'), (1, 'a')]|sort }} {{ missing|sort }} {{ [{'a': {'b': 2}}, {'a': {'b': 1}}]|sort(attribute='a.b') }} {{ [[2, 'x'], [1, 'y']]|sort(attribute=0) }}
{{ [1, 'a']|sort }}
{{ [none, 1]|sort }}
{{ users|sort }}
{{ 5|sort }}
{{ ['a', 'A', 'b', 'a']|unique|list }} {{ ['a', 'A']|unique(true)|list }} {{ [1, 1.0, true, 2]|unique|list }} {{ users|unique(attribute='on')|map(attribute='name')|list }} {{ 'abca'|unique|join }}
{{ [[], []]|unique|list }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1) }} {{ 5|round }} {{ -2.5|round }} {{ 2.1|round(0, 'ceil') }} {{ 2.9|round(method='floor') }} {{ 1234.5|round(-2) }} {{ 1250|round(-2) }} {{ 2.25|round(1, 'ceil') }} {{ 7|round(1, 'floor') }} {{ 1e20|round }} {{ 0.5|round }} {{ 1.005|round(2) }} {{ true|round }} {{ 0.1|round(20) }}
{{ 'a'|round }}
{{ 1.5|round(0, 'x') }}
{{ '<a>'|safe }} {{ '<a>'|e }} {{ '<a>'|escape|escape }} {{ '<a>'|safe|e }} {{ '<a>'|e|forceescape }} {{ "&<>'\\""|e }} {{ ('<'|safe) + '<' }} {{ '<' + ('<'|safe) }} {{ ('<'|safe) ~ '<' }} {{ 5|e }} {{ ('<'|e) is escaped }} {{ '<' is escaped }} {{ ['<'|safe] }} {{ '<'|e|string }} {{ ('<'|safe)|upper + '<' }} {{ none|e }} {{ ('<'|safe) * 2 + '<' }}
{{ 'a\\nb\\n\\nc'|indent }} {{ 'a\\nb'|indent(2) }} {{ 'a\\nb'|indent(2, true) }} {{ 'a\\n\\nb'|indent(2, blank=true) }} {{ 'a\\nb'|indent('>') }} {{ ''|indent }}| {{ 'a\\n'|indent(2) }}| {{ 'a\\n'|indent(2, true, true) }}| {{ 'a\\r\\nb'|indent(1) }} {{ 'a\\nb'|indent(width=3, first=true) }} {{ 'a\\nb'|indent(0) }} {{ 'a\\nb'|indent(-3) }}
{{ 5|indent }}
{{ {'b': 1, 'A': 2, 'a': 0}|dictsort }} {{ {'b': 1, 'A': 2}|dictsort(true) }} {{ {'b': 1, 'a': 2}|dictsort(by='value') }} {{ {'b': 1, 'a': 2}|dictsort(reverse=true) }} {{ {'b': 1, 'a': 2}|dictsort(false, 'value', true) }} {{ {2: 'x', 1: 'y'}|dictsort }}
{{ {'b': 1, 2: 2}|dictsort }}
{{ {}|dictsort(by='x') }}
{{ l|dictsort }}
{{ l|reverse|list }} {{ 'abc'|reverse }} {{ u|reverse }} {{ d|reverse|list }} {{ (1, 2)|reverse|list }} {{ range(3)|reverse|list }} {{ l|map('string')|reverse }} {{ d.items()|reverse|list }}
{{ 5|reverse }}
{{ l|min }} {{ l|max }} {{ w|min }} {{ w|max }} {{ w|max(true) }} {{ []|min }}|{{ users|max(attribute='age') }} {{ users|min(attribute='name') }} {{ 'hello'|max }} {{ [1, 1.0]|max }} {{ d|min }} {{ [true, 2]|min }}
{{ [1, 'a']|min }}
{{ [none, none]|min }}
{{ l|sum }} {{ []|sum }} {{ [1.5, 2]|sum }} {{ users|sum(attribute='age') }} {{ l|sum(start=10) }} {{ [[1], [2]]|sum(start=[]) }} {{ [true, true]|sum }} {{ missing|sum }}
{{ w|sum }}
{{ w|sum(start='') }}
{{ '%s-%s'|format('a', 1) }} {{ '%(x)s'|format(x=2) }} {{ 'a'|center(5) }}| {{ 'ab'|center(7) }}| {{ 'one two-three'|wordcount }} {{ 'a_b c'|wordcount }}
{{ d|attr('b') }}|{{ d|attr('get') is defined }} {{ users[0]|attr('name') is defined }}
{{ {'a': 1, 'b': [1, 2.5, none, true, 'é"\\\\\\n\\t\\u0001\\x7f/']}|tojson }} {{ 'é'|tojson(ensure_ascii=true) }} {{ '🙂\\x7f'|tojson(ensure_ascii=true) }} {{ {}|tojson }} {{ []|tojson }} {{ [[], {}]|tojson(indent=2) }} {{ {'a': [1, {'b': 2}], 'c': 'x'}|tojson(indent=4) }} {{ {'a': 1, 'b': 2}|tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ (1, 2)|tojson }} {{ 1.0|tojson }} {{ 1e100|tojson }} {{ 'nan'|float|tojson }} {{ '-inf'|float|tojson }} {{ {1: 2, true: 3, none: 4, 2.5: 5}|tojson }} {{ '<>&\\''|tojson }} {{ messages|tojson }} {{ [1]|tojson(indent='\\t') }} {{ [1, 2]|tojson(indent=0) }} {{ 'a'|tojson(indent=2) }} {{ none|tojson }} {{ d|tojson(false, 2) }} {{ {'x': {'b': 1, 'a': [{'z': 1, 'y': 2}]}}|tojson(indent=1, sort_keys=true) }} {{ [1, [2, 3]]|tojson(indent=2, separators=(';', '=')) }}
{{ missing|tojson }}
{{ [missing]|tojson }}
{{ range(3)|tojson }}
{{ d.items()|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ {'a': 1, 2: 3}|tojson(sort_keys=true) }}
{{ 'a'|upper|lower|title }} {{ ' x '|trim|length }} {{ l|sort|reverse|join(',') }} {{ (1, 2)|join('a')|length + 1 }}
{{ 'a'|upper('x') }}
{{ 'a'|default }} {{ 'a'|trim()|upper() }}
{{ 'a'|trim(1, 2, 3) }}
{{ 'a'|trim(nosuch=1) }}
{{ 'x'|nosuch }}
{{ 'x'|upper.lower }}
"""

TESTS = """
{{ n is defined }} {{ missing is defined }} {{ missing is undefined }} {{ n is not defined }} {{ d.q is defined }} {{ nil is defined }} {{ d.b is defined and d.b }} {{ missing is not defined or 1 }}
{{ missing.x is defined }}
{{ nil is none }} {{ 0 is none }} {{ missing is none }} {{ nil is not none }}
{{ s is string }} {{ 5 is string }} {{ 5 is number }} {{ 1.5 is number }} {{ true is number }} {{ 5 is integer }} {{ true is integer }} {{ 5.0 is float }} {{ 5 is float }} {{ true is boolean }} {{ 1 is boolean }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 0 is false }}
{{ d is mapping }} {{ l is mapping }} {{ l is sequence }} {{ d is sequence }} {{ s is sequence }} {{ 5 is sequence }} {{ missing is sequence }} {{ l is iterable }} {{ s is iterable }} {{ 5 is iterable }} {{ missing is iterable }} {{ none is iterable }} {{ d.items() is sequence }} {{ d.keys() is iterable }} {{ range(3) is sequence }} {{ (1,) is sequence }} {{ namespace() is mapping }}
{{ 3 is odd }} {{ 4 is even }} {{ 4 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ true is odd }} {{ 3.0 is odd }}
{{ 'a' is odd }}
{{ 9 is divisibleby 0 }}
{{ 1 is eq 1 }} {{ 1 is equalto(1) }} {{ 1 is ne 2 }} {{ 1 is lt 2 }} {{ 1 is lessthan 2 }} {{ 2 is le 2 }} {{ 3 is gt 2 }} {{ 3 is greaterthan(4) }} {{ 3 is ge 3 }} {{ 'a' is eq 'a' }} {{ 'a' is in ['a'] }} {{ 'a' is not in 'b' }} {{ 1 is in(l) }} {{ [1] is eq [1] }} {{ n is eq n }} {{ 1 is == 1 }}
{{ 1 is eq 1 }} {{ n is sameas n }} {{ true is sameas true }} {{ 1 is sameas true }} {{ none is sameas none }} {{ [] is sameas [] }} {{ l is sameas l }} {{ 1 is sameas 1 }} {{ 1.0 is sameas 1 }}
{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'Abc' is lower }} {{ 5 is lower }} {{ '' is upper }} {{ 'a1' is lower }}
{{ range is callable }} {{ s is callable }} {{ s.upper is callable }} {{ missing is callable }} {{ 'upper' is filter }} {{ 'nosuch' is filter }} {{ 'defined' is test }} {{ 'nosuch' is test }} {{ namespace is callable }} {{ raise_exception is callable }}
{{ not n is defined }} {{ n is defined and s is string }} {{ n is defined or x }} {{ 'y' if n is defined else 'z' }} {{ (n is defined) ~ 'a' }} {{ n is number is defined }}
{{ n is string or n is number }} {{ n + 1 is even }} {{ s|length is gt 3 }} {{ -n is number }} {{ d['b'] is eq d['b'] }} {{ 5 is eq d.b }} {{ 1 is eq l[1] }} {{ 'ab' is eq 'a' + 'b' }}
{{ n is nosuch }}
{{ n is }}
{{ 1 is gt 'a' }}
{{ 1 is gt }}
{{ 3 is divisibleby }}
{{ s is string(1) }}
"""

STATEMENTS = [
    "{% for x in l %}{{ x }}{% endfor %}",
    "{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "{% for x in l %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {{ loop.previtem is defined }} {{ loop.nextitem is defined }};{% endfor %}",
    "{% for x in l %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}",
    "{% for x in l %}{{ loop.depth }}{{ loop.depth0 }}{% for y in l %}{{ loop.index }}{{ loop.depth }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in l if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }}{{ loop.last }} {% endfor %}",
    "{% for x in l if x > 99 %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in l if x > 1 %}{{ loop.previtem }}{{ x }}{{ loop.nextitem }} {% endfor %}",
    "{% for x in l if loop %}{{ x }}{% endfor %}|{{ loop is defined }}",
    "{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(stop=false) %}{% for x in [1, 2, 3, 4] if not ns.stop %}{{ loop.length }}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}empty{% endfor %}",
    "{% for x in missing %}{{ x }}{% else %}empty{% endfor %}",
    "{% for x in none %}{{ x }}{% endfor %}",
    "{% for x in 5 %}{{ x }}{% endfor %}",
    "{% for c in 'aé世' %}[{{ c }}]{% endfor %}",
    "{% for k in d %}{{ k }},{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}",
    "{% for k, v in d|items %}{{ k }}={{ v }},{% endfor %}",
    "{% for k, v in d|dictsort %}{{ k }}={{ v }},{% endfor %}",
    "{% for (a, b) in [(1, 2), (3, 4)] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for a, b in [(1, 2, 3)] %}{% endfor %}",
    "{% for a, b in [1] %}{% endfor %}",
    "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for x in (1, 2) + (3,) %}{{ x }}{% endfor %}",
    "{% for x in range(3) %}{{ x }}{% endfor %}{{ x }}",
    "{% for x in range(2, 8, 3) %}{{ x }}{% endfor %}",
    "{% for x in range(0) %}{% else %}e{% endfor %}",
    "{% for x in range(1, 5, 0) %}{% endfor %}",
    "{% for x in l|sort %}{{ x }}{% endfor %}",
    "{% for x in l[::-1] %}{{ x }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}no{% endfor %}",
    "{% for x in l %}{% for y in l %}{% if y == 1 %}{% break %}{% endif %}{{ y }}{% endfor %};{% endfor %}",
    "{% break %}",
    "{% for x in l %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}",
    "{% for x in l %}{% for y in l %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in l %}{% set outer = loop %}{% for y in l %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for loop in l %}{% endfor %}",
    "{% for x in l %}{% set x = 9 %}{{ x }}{% endfor %}",
    "{{ loop }}",
    "{% for m in messages %}{{ m.role }}:{{ m['content']|trim }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% if t %}a{% endif %}{% if no %}b{% else %}c{% endif %}{% if no %}d{% elif t %}e{% else %}f{% endif %}",
    "{% if no %}a{% elif no %}b{% elif nil %}c{% else %}d{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}{% if l %}c{% endif %}{% if empty %}d{% endif %}{% if e %}e{% endif %}{% if zero %}f{% endif %}{% if 0.0 %}g{% endif %}{% if d %}h{% endif %}",
    "{% if 1, 2 %}tuple{% endif %}",
    "{% if n > 5 and s %}x{% endif %}",
    "{% if (n if t else 0) %}x{% endif %}",
    "{% if t %}",
    "{% endif %}",
    "{% if t %}{% endfor %}",
    "{% else %}",
    "{% set x = 1 %}{{ x }}",
    "{% set x, y = 1, 2 %}{{ x }}{{ y }}",
    "{% set (x, y) = [3, 4] %}{{ x }}{{ y }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x, y = [1] %}",
    "{% set x %}a{{ n }}b{% endset %}[{{ x }}]",
    "{% set x | upper %}a{{ s }}b{% endset %}[{{ x }}]",
    "{% set x | trim | replace('a', 'b') %} a {% endset %}[{{ x }}]",
    "{% set x %}{% set y = 5 %}{{ y }}{% endset %}{{ x }}{{ y }}",
    "{% set n = 1 %}{{ n }}",
    "{% set true = 1 %}",
    "{% set 'a' = 1 %}",
    "{% set x.y = 1 %}",
    "{% set d.b = 1 %}",
    "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}{{ ns.b }}{{ ns.b is defined }}",
    "{% set ns = namespace(a=1) %}{% for x in l %}{% set ns.a = ns.a + x %}{% endfor %}{{ ns.a }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}",
    "{% set ns = namespace() %}{% set ns.x %}block{% endset %}{{ ns.x }}",
    "{% set ns = namespace(items=[1]) %}{{ ns.items }}{% set ns.items = ns.items + [2] %}{{ ns.items }}",
    "{% set x = 0 %}{% for y in l %}{% set x = x + y %}{{ x }}{% endfor %}{{ x }}",
    "{% if t %}{% set x = 5 %}{% endif %}{{ x }}",
    "{% if no %}{% set n = 5 %}{% endif %}{{ n }}",
    "{% for y in l %}{% if y == 1 %}{% set n = 5 %}{% endif %}{{ n }}{% endfor %}{{ n }}",
    "{{ q }}{% set q = 1 %}{{ q }}",
    "{% macro m() %}x{% endmacro %}{{ m() }}{{ m()|upper }}",
    "{% macro m(a, b) %}{{ a }}-{{ b }}{% endmacro %}{{ m(1, 2) }} {{ m(1) }} {{ m(b=2, a=1) }} {{ m() }} {{ m(b=3) }}",
    "{% macro m(a, b=5, c='x') %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(1, c='y') }} {{ m(a=0, b=none) }} {{ m(1, missing) }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a) %}{{ a is defined }}{% endmacro %}{{ m() }}{{ m(1) }}{{ m(missing) }}",
    "{% macro m(a) %}{{ a.x }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }} {{ m() }}",
    "{% macro m(a) %}{{ a }}{{ varargs|join(',') }}{% for k, v in kwargs.items() %}{{ k }}{{ v }}{% endfor %}{% endmacro %}{{ m(1, 2, 3, z=4) }}",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body{% endcall %}",
    "{% macro m() %}[{{ caller(1, 2) }}]{% endmacro %}{% call(a, b) m() %}{{ a }}{{ b }}{{ n }}{% endcall %}",
    "{% macro m() %}[{{ caller is defined }}]{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
    "{% macro m() %}x{% endmacro %}{% call m() %}{% endcall %}",
    "{% call n %}{% endcall %}",
    "{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}",
    "{% macro m() %}{{ n }}{% set n = 1 %}{{ n }}{% endmacro %}{{ m() }}{{ n }}",
    "{% set x = 1 %}{% macro m() %}{{ x }}{% endmacro %}{% set x = 2 %}{{ m() }}",
    "{% for y in l %}{% macro m() %}{{ y }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}",
    "{% macro m(loop) %}{{ loop }}{% endmacro %}{{ m(3) }}",
    "{% for x in l %}{% macro m() %}{{ x }}{% endmacro %}{% for x in 'ab' %}{{ m() }}{% endfor %}{% endfor %}",
    "{% macro m(*a) %}{% endmacro %}",
    "{{ m() }}{% macro m() %}x{% endmacro %}",
    "{% macro f(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ f(*[1, 2]) }}{{ f(**{'a': 1, 'b': 2}) }}{{ f(1, *[2]) }}{{ f(*[1], **{'b': 2}) }}",
    "{{ dict(a=1, b=2) }}{{ dict([('x', 1)]) }}{{ dict({'q': 1}, r=2) }}{{ dict() }}",
    "{{ dict(1) }}",
    "{{ range() }}",
    "{{ range('a') }}",
    "{% filter upper %}a{{ s }}{% endfilter %}",
    "{% filter replace('a', 'b')|upper %}aca{% endfilter %}",
    "{% filter trim %}{% set z = 1 %} x {% endfilter %}{{ z }}",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}",
    "{% generation %}{{ s }}{% set gg = 1 %}{% endgeneration %}{{ gg }}",
    "{% for x in l %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}",
    "a{# comment #}b{#- c -#} d {#+ e +#} f",
    "{# {{ x }} {% if %} #}x",
    "{# unclosed",
    "{{ unclosed",
    "{% unclosed",
    "{{ 'unclosed }}",
    "{{ }}",
    "{{ 1 2 }}",
    "{{ 1 + }}",
    "{{ (1 }}",
    "{{ [1 }}",
    "{{ 1) }}",
    "{{ ) }}",
    "{{ {1} }}",
    "{{ a b }}",
    "{{ a. }}",
    "{{ .5 }}",
    "{{ a['x' }}",
    "{{ a? }}",
    "{{ 1 = 2 }}",
    "{{ x | }}",
    "{% if %}{% endif %}",
    "{% for %}{% endfor %}",
    "{% for x l %}{% endfor %}",
    "{% for x in %}{% endfor %}",
    "{% set %}",
    "{% set x %}",
    "{% macro %}{% endmacro %}",
    "{% macro m %}{% endmacro %}",
    "{% nosuch %}",
    "{% 5 %}",
    "{% raw %}{{ x }}{% if %}{% endraw %}",
    "a {%- raw -%} {{ x }} {%- endraw -%} b",
    "  {% raw %}\n  x\n  {% endraw %}\n  y",
    "{% raw %}unclosed",
    "{%+ raw %} a {%+ endraw +%}\nb",
    "{% raw %} {% raw %} {% endraw %}",
    "{{ '{{' }}{{ '}}' }}{{ '%}' }}{{ {'a': {'b': 1}} }}",
    "{% set x = {'a': '%}'} %}{{ x }}",
    "{ { } } {a} {{ '{' }} % {",
    "a\n  {% if t %}\n  b\n  {% endif %}\nc",
    "a\n  {%- if t %}\n  b\n  {%- endif %}\nc",
    "a\n  {% if t -%}\n  b\n  {% endif -%}\nc",
    "a\n  {%+ if t %}\n  b\n  {%+ endif %}\nc",
    "a\n  {% if t +%}\n  b\n  {% endif +%}\nc",
    "a  \n  {{- s -}}  \n b",
    "a {{+ n }} {{ n -}} \n\n b {{- n }}",
    "  {{ n }}  \n  {# c #}  \n  x {# d #}\n",
    "\n\n  {% set a = 1 %}\n\n  {% set b = 2 %}\n\n{{ a }}{{ b }}\n\n",
    "\t{% if t %}\t{% endif %}\t\n",
    "x {% if t %} y {% endif %} z",
    "x\r\ny\rz\n{% if t %}\r\na\r\n{% endif %}",
    "trailing\n",
    "trailing\n\n",
    "trailing\r\n",
    "{{ n }}\n",
    "{% if t %}\n{% endif %}\n",
    "\n{% if t %}x{% endif %}\n\n",
    "{%- if t -%}\n  x  \n{%- endif -%}",
    "   {%- if t %} x{% endif %}",
    "a\u3000{%- if t -%}\u2003b{% endif %}",
    "\u00a0{% if t %}x{% endif %}",
    "{{'a'}}{{ 'b' }}{{\n'c'\n}}{{\t'd'\t}}",
    "{%if t%}x{%endif%}{%for x in l%}{{x}}{%endfor%}",
    "{%- for x in l -%} {{ x }} {%- endfor -%}",
    "{% for x in l %}\n  {{ x }}\n{% endfor %}\nend",
    "{% for x in l -%}\n  {{ x }}\n{%- endfor %}\nend",
    "{% if t: %}x{% endif %}{% for x in l: %}{{ x }}{% endfor %}",
    "{{ raise_exception('x') }}",
    "{{ raise_exception() }}",
    "{% if no %}{{ raise_exception('x') }}{% endif %}ok",
    "{{ strftime_now('%d %b %Y') }} {{ strftime_now('%Y-%m-%d %H:%M:%S %A %B %j %p %I %y %%') }} {{ strftime_now('') }} {{ strftime_now('%f%z%Z|') }}",
    "{{ strftime_now() }}",
    "{{ strftime_now(5) }}",
    "{{ [1, 2,] }}{{ (1, 2,) }}{{ {'a': 1,} }}{{ dict(a=1,) }}",
    "{{ [1,, 2] }}",
    "{{ dict(a=1, a=2) }}",
    "{{ dict(**{'a': 1}) }}{{ dict(**5) }}",
    "{{ f(x=1, 2) }}",
    "{{ l | first | default('x') | string | upper }}",
    "{{ (l | first) + 1 }}{{ l|first + 1 }}",
    "{{ not no and t }}{{ not (no and t) }}{{ not no == true }}",
    "{{ n if n is defined and n is not none else 'x' }}",
    "{{ 'a' if n > 3 else 'b' ~ 'c' }}",
    "{{ ['a', 'b'][0] ~ ['c'][0] }}",
    "{{ (users | selectattr('name', 'equalto', 'bob') | list)[0].age }}",
    "{{ users[0].name.upper().lower()[0] }}",
    "{{ 'x'.join(l|map('string')) }}",
    "{{ l is iterable and l is not string and l is not mapping }}",
    "{{ messages[1:]|map(attribute='role')|join(',') }}{{ messages[-1].content.split('\\n')[-1] }}",
    "{% set msgs = messages[1:] if messages[0].role == 'system' else messages %}{{ msgs|length }}",
    "{% set x = 'a' if no %}{{ x }}{{ x is defined }}",
    "{{ (1, 2) is sequence }}{{ 1 is eq(1) and 2 is eq(2) }}",
    "{{ loop is defined }}{% for i in l %}{{ loop is defined }}{% endfor %}",
    "{% set a = [] %}{% for x in l %}{% set _ = a.append(x * 2) %}{% endfor %}{{ a }}",
    "{% set _ = l.append(4) %}{{ l }}",
    "{{ 'a\\\\nb' }}|{{ 'a\\nb' }}|{{ \"it's\" }}|{{ 'say \"x\"' }}",
    "{{ 1.0 }}{{ 1.10 }}{{ 100000.0 }}{{ 1e22 }}{{ 3.0e0 }}{{ 1/3 }}{{ 2/3 }}{{ 10/4 }}{{ 1e3|int }}",
    "{{ 5 // 2.0 }}{{ 5 % 2.5 }}{{ 2 ** 62 }}{{ 2 ** 0 }}{{ (-2) ** 3 }}{{ 2.0 ** 3 }}",
    "{{ 3 if }}",
    "{{ if 3 }}",
    "{{ in }}",
    "{{ x is in }}",
    "{{ l.0.1 }}",
    "{{ l.0 .x is defined }}",
    "{{ 1.5.x is defined }}",
    "{{ users|map(attribute='name')|map('lower')|sort|join('/') }}",
    "{{ d.b|string + d.a|string }}",
    "{{ [d.b, d.a]|sum / 2 }}",
    "{{ {'a': 1}['a'] if 'a' in {'a': 1} else 0 }}",
    "{% if 'tool_calls' in messages[2] and messages[2].tool_calls %}{% for tc in messages[2].tool_calls %}{{ tc.function.name }}({{ tc.function.arguments|tojson }}){% endfor %}{% endif %}",
    "{{ {'x': n, 'y': [n, {'z': none}]}|tojson(indent=2)|indent(4) }}",
]


def all_cases():
    for group in (PRINTING, OPERATORS, ACCESS, METHODS, FILTERS, TESTS):
        for line in group.strip("\n").split("\n"):
            if line:
                # Every expression of a line on its own, so that one error hides no other.
                parts = line.split("}} {{")
                if line.startswith("{{") and len(parts) > 1 and "{%" not in line:
                    for i, part in enumerate(parts):
                        yield ("{{" if i else "") + part + ("}}" if i + 1 < len(parts) else "")
                else:
                    yield line
    yield from STATEMENTS
