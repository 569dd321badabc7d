package scripts

import (
	"bytes"
	"encoding/json"
	"slices"
)

// This file lists the kinds of step. A new kind gets a constant and a row in kindRules here, and a
// file in worker/kinds that does its steps. A type of its own, in this file or in another one,
// describes what only its steps have; Step.Spec and Action.Spec hold it.

// Kind is the kind of a step.
type Kind string

// The kinds of step.
const (
	KindRun    Kind = "run"    // a shell text
	KindUpload Kind = "upload" // puts a file on the host
	KindCheck  Kind = "check"  // a shell text that changes nothing and must succeed
	KindWait   Kind = "wait"   // releases the worker for a time, or until a condition holds
	KindVerify Kind = "verify" // checks repeatedly whether the host is healthy
	KindReboot Kind = "reboot" // reboots the host, then checks as verify does

	KindConfirm Kind = "confirm" // a change that the host reverts unless it is proven in time
	KindGate    Kind = "gate"    // waits for the approval of a person
	KindAnsible Kind = "ansible" // a playbook of Ansible, which the node runs for the host
)

// kindRule describes a kind of step.
type kindRule struct {
	name    Kind
	keys    []string // keys of its steps beside those that steps of all kinds have
	looks   bool     // its steps change nothing
	again   bool     // a step that runs twice does no harm: it puts, or finds out, the same again
	asks    bool     // its steps wait for a person, have a timeout of their own, and end a dry run
	breaks  bool     // its steps disturb their host, so the runbook must be disruptive
	patient bool     // its steps span several attempts and release the worker in between
	rescues bool     // it may stand in on_fail
	how
}

// how says how steps of a kind are read, stored and filled in.
type how struct {
	// read reads the value of the key that is named as the kind.
	read func(p *parser, v value, s *Step)

	// spec makes an empty Step.Spec for the decoder; nil: steps of this kind have none.
	spec func() any

	// fill fills in for one host what the step does.
	fill func(f Frozen, s Step, in scope, a *Action) error

	// types are the keys of a mapping in the JSON Schema; nil: the value is a text.
	types func() property
}

// kindRules returns the kinds of step, in the order in which messages list them.
func kindRules() []kindRule {
	judged := []string{"retry", "expect", "classes", "save"}
	looked, restarts := judged[1:], []string{"disruptive", "classes"}
	return []kindRule{
		{name: KindRun, rescues: true, how: howRun(),
			keys: append([]string{"repeatable", "disruptive", "preflight", "diff"}, judged...)},
		{name: KindUpload, again: true, rescues: true, how: howUpload(),
			keys: []string{"repeatable", "disruptive", "preflight"}},
		{name: KindCheck, looks: true, again: true, rescues: true, how: howRun(),
			keys: append([]string{"diff"}, judged...)},
		{name: KindWait, looks: true, again: true, patient: true, rescues: true,
			how: specified(readWait, fillWait, waitTypes), keys: looked},
		{name: KindVerify, looks: true, again: true, patient: true, rescues: true,
			how: specified(readVerify, fillVerify, verifyTypes), keys: looked},
		{name: KindReboot, again: true, breaks: true, patient: true, rescues: true,
			how: specified(readReboot, fillReboot, rebootTypes), keys: restarts},
		{name: KindConfirm, again: true, patient: true,
			how: specified(readConfirm, fillConfirm, confirmTypes), keys: restarts},
		{name: KindGate, looks: true, again: true, asks: true, rescues: true,
			how: specified(readGate, fillGate, gateTypes)},
		{name: KindAnsible, again: true, rescues: true,
			how:  specified(readPlaybook, fillPlaybook, playbookTypes),
			keys: append([]string{"disruptive"}, judged...)},
	}
}

// specified returns how steps of a kind work that keeps in Step.Spec what the runbook says, as T.
func specified[T any](read func(*parser, value) *T,
	fill func(f Frozen, spec *T, in scope, a *Action) error, types func() property) how {
	return how{
		read: func(p *parser, v value, s *Step) { s.Spec = read(p, v) },
		spec: func() any { return new(T) },
		fill: func(f Frozen, s Step, in scope, a *Action) error {
			return fill(f, s.Spec.(*T), in, a)
		},
		types: types,
	}
}

// kindTable has the kinds by name. It is made once, because a worker looks up each step.
var kindTable = func() map[Kind]kindRule {
	table := map[Kind]kindRule{}
	for _, r := range kindRules() {
		table[r.name] = r
	}
	return table
}()

// kindNames returns the names of the kinds, in the order in which messages list them.
func kindNames() []string {
	var names []string
	for _, r := range kindRules() {
		names = append(names, string(r.name))
	}
	return names
}

// kindKeys are the keys that determine the kind of a step.
func kindKeys() []key[Step] {
	var keys []key[Step]
	for _, r := range kindRules() {
		keys = append(keys, key[Step]{string(r.name), func(p *parser, v value, s *Step) {
			if p.kind(v, r.name, s) {
				r.read(p, v, s)
			}
		}})
	}
	return keys
}

// Looks reports whether steps of the kind change nothing.
func (k Kind) Looks() bool { return kindTable[k].looks }

// Patient reports whether a step of the kind spans several attempts and releases its worker in
// between.
func (k Kind) Patient() bool { return kindTable[k].patient }

// howRun returns how steps work that are a shell text.
func howRun() how {
	return how{
		read: func(p *parser, v value, s *Step) { s.Run = p.shellWithSecrets(v) },
		fill: func(f Frozen, s Step, in scope, a *Action) (err error) {
			in.secrets = &secrets{known: f.Values.secretNames()}
			if a.Shell, err = f.shell(s.Run, in); err == nil && len(in.secrets.used) > 0 {
				a.Secrets, a.Shell = in.secrets.used, secretHead+a.Shell
			}
			return err
		},
	}
}

// howUpload returns how steps work that put a file on the host.
func howUpload() how {
	return how{
		read: func(p *parser, v value, s *Step) { s.Upload = readUpload(p, v) },
		fill: func(f Frozen, s Step, in scope, a *Action) (err error) {
			a.Upload, err = f.file(s.Upload, in)
			return err
		},
		types: func() property { return object(keyNames(uploadKeys()), nil) },
	}
}

// MarshalJSON puts Spec under a key with the name of the kind.
func (s Step) MarshalJSON() ([]byte, error) {
	type plain Step // the same type without this method
	data, err := json.Marshal(plain(s))
	if err != nil || s.Spec == nil {
		return data, err
	}
	spec, err := json.Marshal(map[Kind]any{s.Kind: s.Spec})
	if err != nil {
		return nil, err
	}
	return slices.Concat(data[:len(data)-1], []byte(","), spec[1:]), nil
}

// UnmarshalJSON refuses unknown fields, as Frozen does.
func (s *Step) UnmarshalJSON(data []byte) error {
	type plain Step // the same type without this method
	var p plain
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	var kind Kind
	if text, has := fields["kind"]; err == nil && has {
		err = json.Unmarshal(text, &kind)
	}
	spec, has := fields[string(kind)]
	if made := kindTable[kind].spec; err == nil && has && made != nil {
		p.Spec = made()
		delete(fields, string(kind))
		if err = decodeStrictly(spec, p.Spec); err == nil {
			data, err = json.Marshal(fields)
		}
	}
	if err == nil {
		err = decodeStrictly(data, &p)
	}
	*s = Step(p)
	return err
}

// decodeStrictly decodes JSON and refuses fields that the value does not have.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
