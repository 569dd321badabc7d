package scripts

import (
	"encoding/json"
	"maps"
)

// Schema returns the JSON Schema of runbooks for editors: which keys exist where, with their
// types. It lacks the rules that only Parse can check.
func Schema() []byte {
	text := property{"type": []string{"string", "number"}}
	flag := property{"type": "boolean"}
	number := property{"type": "integer"}
	texts := property{"type": "array", "items": text}
	numbers := property{"type": "array", "items": number}
	types := property{"enum": typeNames()}

	retry := object(keyNames(retryKeys()), property{"submit": number})
	again := object(keyNames(againKeys()), property{"tries": number})
	away := object(keyNames(awayKeys()), property{"probes": number})
	ready := object(keyNames(readyKeys()), property{"probes": number})
	probes := property{"unreachable": away, "not_ready": ready}
	one := property{"save": property{"type": "object",
		"additionalProperties": object(keyNames(saveKeys()), property{"lines": flag})}}
	maps.Copy(one, property{
		"upload":  object(keyNames(uploadKeys()), nil),
		"wait":    object(keyNames(waitKeys()), property{"release": flag}),
		"verify":  object(keyNames(verifyKeys()), probes),
		"reboot":  object(keyNames(rebootKeys()), probes),
		"confirm": object(keyNames(confirmKeys()), nil),
		"gate":    object(keyNames(gateKeys()), property{"release": flag}),
		"expect":  object(keyNames(expectKeys()), property{"exit": numbers, "json": texts}),
		"classes": property{"type": "array", "items": object(keyNames(classKeys()),
			property{"exit": number, "class": property{"enum": classNames()}})},
		"retry": again, "when": texts, "outcome": property{"const": RolledBack},
		"repeatable": flag, "disruptive": flag, "preflight": flag, "diff": flag,
		"on_fail": property{"type": "array", "items": property{"$ref": "#/$defs/step"}},
	})
	step := object(keyNames(stepKeys()), one)
	step["required"] = []string{"name"}
	argument := object(keyNames(argumentKeys()), property{"type": types, "required": flag,
		"max_length": number, "values": texts, "default": property{}})
	all := object(keyNames(runbookKeys()), property{
		"arguments": property{"oneOf": []property{
			{"type": "object", "additionalProperties": argument}, {"type": "array", "items": argument}}},
		"disruptive": flag, "prove_group": flag, "repeatable": flag, "needs": texts, "retry": retry,
		"steps": property{"type": "array", "minItems": 1, "items": property{"$ref": "#/$defs/step"}},
	})
	all["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	all["title"], all["required"] = "a runbook of muster", []string{"name", "steps"}
	all["$defs"] = property{"step": step}
	b, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		panic(err) // every value in it can be encoded
	}
	return append(b, '\n')
}

type property map[string]any

// object returns a mapping with these keys, which are texts unless types says otherwise.
func object(keys []string, types property) property {
	all := property{}
	for _, k := range keys {
		all[k] = property{"type": []string{"string", "number"}}
		if t, ok := types[k]; ok {
			all[k] = t
		}
	}
	return property{"type": "object", "additionalProperties": false, "properties": all}
}

// Skeleton returns the text of a new runbook that explains each key.
func Skeleton(name string) string {
	return `# yaml-language-server: $schema=runbook.schema.json
name: ` + name + `
description: What it does, in a sentence or two.
arguments:
  path:
    type: string # or int, bool, duration, enum, file, secret
    description: what to give
    default: /etc/motd
# disruptive: true  # traffic may suffer: one host of a group at a time
timeout: 5m # of each step, and of what it may take longer than
expect: 10s # how long it usually takes

steps:
  # A check changes nothing. It runs in dry runs too (muster run --check).
  - name: there
    check: test -e {{path}} && wc -l < {{path}}
    save:
      lines: {match: '^\s*(\d+)'}

  # A step changes something. Values are one quoted word each, whatever is in them.
  - name: change
    when: ["{{saved.lines}} < 100"]
    run: |
      cp -p {{path}} {{path}}.before
      printf '%s\n' "changed by muster, task "{{task.id}} >> {{path}}
    # What helps if it fails; the job ends rolled_back then, and not failed.
    on_fail:
      - name: back
        run: mv {{path}}.before {{path}}
        outcome: rolled_back

  - name: well
    check: tail -n 1 {{path}}
    expect: {match: changed by muster}
`
}
