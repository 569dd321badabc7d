package intake

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"muster/internal/seal"
	"muster/internal/secretref"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
	"muster/server/fault"
)

// errNoKey is the error of a server that cannot seal anything.
var errNoKey = errors.New("this server has no key for secrets: make one with `muster secrets " +
	"keygen FILE`, and name it as secrets.key on all servers and nodes")

// A Sealer reads the keys with which secret arguments are sealed; nil: there are none.
type Sealer func() (seal.Keys, error)

func (s Sealer) keys() (seal.Keys, error) {
	if s == nil {
		return seal.Keys{}, errNoKey
	}
	return s()
}

// Check reports why the secrets of a draft cannot be sealed.
func (s Sealer) Check(p draft.Draft) []error {
	if len(p.Secrets) == 0 {
		return nil
	}
	_, err := s.keys()
	return fault.Each("body.secrets", err)
}

// seal puts the secrets of a draft into its task, sealed for its id.
func (s Sealer) seal(p *draft.Draft) error {
	if len(p.Secrets) == 0 {
		return nil
	}
	keys, err := s.keys()
	if err != nil {
		return err
	}
	var frozen scripts.Frozen
	if err := json.Unmarshal(p.Task.Spec.Action, &frozen); err != nil {
		return err
	}
	frozen.Values.Plain = p.Secrets
	err = frozen.Seal(func(argument string, text seal.Text) (string, error) {
		return keys.Seal(string(p.Task.ID), argument, text)
	})
	if err != nil {
		return err
	}
	p.Task.Spec.Action, err = json.Marshal(frozen)
	return err
}

// open opens the secrets of an older task, to be sealed anew for the task that does some of
// its jobs again.
func (s Sealer) open(of jobs.TaskID, frozen scripts.Frozen) (map[string]seal.Text, error) {
	frozen.Values.Secrets = maps.Clone(frozen.Values.Secrets)
	maps.DeleteFunc(frozen.Values.Secrets, func(_, text string) bool {
		_, ref := secretref.Cut(text) // the new task keeps it as it is
		return ref
	})
	if len(frozen.Values.Secrets) == 0 {
		return nil, nil
	}
	keys, err := s.keys()
	if err != nil {
		return nil, err
	}
	texts, err := frozen.OpenSecrets(func(argument, sealed string) (seal.Text, error) {
		return keys.Open(string(of), argument, sealed)
	})
	if err != nil {
		return nil, fmt.Errorf("the secrets of task %s cannot be opened, so run it anew with muster "+
			"run: %w", of, err)
	}
	return texts, nil
}
