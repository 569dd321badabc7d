package draft

import (
	"maps"
	"slices"

	"muster/internal/secretref"
	"muster/jobs"
	"muster/scripts"
)

// ranOf describes a frozen runbook for people who ask later what ran. It has the names of
// secrets only, and references to secrets.
func ranOf(f scripts.Frozen) *jobs.Ran {
	list := argumentsOf(f.Values)
	r := jobs.NewRan(f.Version, f.Hash, list)
	r.Work = jobs.WorkOf(f.Runbook, f.Hash, list)
	return r
}

// argumentsOf lists the arguments of a task by name.
func argumentsOf(v scripts.Values) []jobs.Argument {
	byName := map[string]jobs.Argument{}
	for name, text := range v.Args {
		a := jobs.Argument{Name: name, Value: text}
		if content, ok := v.Files[text]; ok {
			a = jobs.Argument{Name: name, Value: string(content), File: true, SHA256: text,
				Bytes: int64(len(content))}
		} else if size, ok := v.Blobs[text]; ok {
			a = jobs.Argument{Name: name, File: true, Bytes: size, SHA256: text}
		}
		byName[name] = a
	}
	names := slices.AppendSeq(slices.Collect(maps.Keys(v.Secrets)), maps.Keys(v.Plain))
	for _, name := range names {
		byName[name] = jobs.Argument{Name: name, Secret: true}
		if _, ok := secretref.Cut(v.Secrets[name]); ok {
			byName[name] = jobs.Argument{Name: name, Value: v.Secrets[name]}
		}
	}
	list := make([]jobs.Argument, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}
