package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"muster/internal/serverkey"
	"muster/internal/sshsig"
	"muster/jobs"
)

// SignAs signs a message in the name of the servers, as ssh-keygen -Y sign does.
func SignAs(k serverkey.Keys, namespace string, message []byte) (string, error) {
	text, err := sshsig.SignEd25519(k.Signer(serverkey.Orders), namespace, message)
	return string(text), err
}

// Signers are those whose signatures count at a time.
type Signers struct {
	Allowed sshsig.Allowed
	Now     time.Time
}

// check reads a signature. It returns an error unless the signature holds, and else the names of
// its owner.
func (s Signers) check(text, namespace string, message []byte) (*sshsig.Signature, []string,
	error) {
	sig, err := sshsig.Parse([]byte(text))
	if err != nil {
		return nil, nil, err
	}
	if err := sig.Verify(namespace, message); err != nil {
		return nil, nil, err
	}
	names, err := s.Allowed.Principals(sig.Key, namespace, s.Now)
	return sig, names, err
}

// server returns an error unless a text is the signature of a server.
func (s Signers) server(text, namespace string, message []byte) error {
	if text == "" {
		return errors.New("no server has signed it")
	}
	_, names, err := s.check(text, namespace, message)
	if err == nil && !slices.ContainsFunc(names, isServer) {
		err = fmt.Errorf("%s is no server", names[0])
	}
	return err
}

// An Answer is the answer at a gate of a job, at a step.
type Answer struct {
	Installation string        `json:"installation"`
	Job          jobs.ID       `json:"job"`
	Step         int           `json:"step"`
	Word         jobs.GateWord `json:"word"`
	Note         string        `json:"note"`
}

// AnswerOf returns an answer for a job at a step.
func AnswerOf(id jobs.ID, step int, a jobs.GateAnswer) Answer {
	return Answer{Job: id, Step: step, Word: a.Word, Note: a.Note}
}

// Sign signs an answer in the name of the servers; without a key it returns nothing.
func (a Answer) Sign(k serverkey.Keys) (string, error) {
	if k.None() {
		return "", nil
	}
	a.Installation = k.Installation()
	message, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	return SignAs(k, NamespaceGate, message)
}

// Check returns an error unless a server of the installation has signed an answer.
func (a Answer) Check(installation, proof string, s Signers) error {
	a.Installation = installation
	message, err := json.Marshal(a)
	if err == nil {
		err = s.server(proof, NamespaceGate, message)
	}
	if err != nil {
		return fmt.Errorf("the answer at its gate: %w", err)
	}
	return nil
}
