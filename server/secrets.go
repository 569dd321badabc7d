package server

import (
	"encoding/json"
	"errors"
	"fmt"

	"muster/internal/seal"
	"muster/internal/wording"
	"muster/jobs"
	"muster/scripts"
	"muster/server/draft"
)

// errNoKey is about a server that cannot seal anything.
var errNoKey = errors.New("this server has no key for secrets: make one with `muster secrets " +
	"keygen FILE`, and name it as secrets.key on all servers and nodes")

// keys are those that secrets are sealed with.
func (s *Server) keys() (seal.Keys, error) {
	if s.secretKeys == nil {
		return seal.Keys{}, errNoKey
	}
	return s.secretKeys()
}

// mayKeepSecrets tells whether the secrets of a plan can be sealed.
func (s *Server) mayKeepSecrets(p draft.Draft) []error {
	if len(p.Secrets) == 0 {
		return nil
	}
	_, err := s.keys()
	return mistakes("body.secrets", err)
}

// sealSecrets puts the secrets of a plan into its task, sealed for its id.
func (s *Server) sealSecrets(p *draft.Draft) error {
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

// openSecrets opens those of an older task, to be sealed anew for the one that does some of
// its jobs again.
func (s *Server) openSecrets(of jobs.TaskID, frozen scripts.Frozen) (map[string]seal.Text, error) {
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

// openly refuses a schedule whose runbook has secrets: what it asks for is kept in the open.
func openly(c *scripts.Catalog, schedule, runbook string) []error {
	r, err := c.Lookup(runbook)
	if err != nil || len(r.SecretArguments()) == 0 {
		return nil
	}
	return []error{mistake("body.files", "schedule %s: the runbook %s has secret arguments (%s), "+
		"and what a schedule asks with is kept in the open: have the step read it from a file of the "+
		"host, or run it with muster run", schedule, runbook, wording.Join(r.SecretArguments(), ", "))}
}
