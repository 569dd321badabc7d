package scripts

import (
	_ "embed" // the skeleton of a runbook
	"encoding/json"
	"maps"
	"strings"
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
	one := property{"save": property{"type": "object",
		"additionalProperties": object(keyNames(saveKeys()), property{"lines": flag})}}
	maps.Copy(one, property{
		"expect": object(keyNames(expectKeys()), property{"exit": numbers, "json": texts}),
		"classes": property{"type": "array", "items": object(keyNames(classKeys()),
			property{"exit": number, "class": property{"enum": classNames()}})},
		"retry": again, "when": texts, "outcome": property{"const": RolledBack},
		"repeatable": flag, "disruptive": flag, "preflight": flag, "diff": flag,
		"on_fail": property{"type": "array", "items": property{"$ref": "#/$defs/step"}},
	})
	for _, kind := range kindRules() {
		if kind.types != nil {
			one[string(kind.name)] = kind.types()
		}
	}
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

//go:embed skeleton.yaml
var skeleton string

// Skeleton returns the text of a new runbook that explains each key.
func Skeleton(name string) string {
	return strings.Replace(skeleton, "name: NAME\n", "name: "+name+"\n", 1)
}
