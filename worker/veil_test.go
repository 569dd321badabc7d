package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"muster/fleet"
	"muster/fleet/remote"
	"muster/internal/seal"
	"muster/jobs"
	"muster/scripts"
)

const (
	swordfish = "swordfish-of-1932"

	telling = `
name: telling
timeout: 20s
arguments: {pw: {type: secret}}
steps:
  - name: look
    check: look
    save: {it: {match: 'it is (\S+)'}}
  - name: use
    run: printf %s {{pw}}
  - name: end
    run: echo {{saved.it}}
`
)

func testKeys(t testing.TB, b byte) seal.Keys {
	t.Helper()
	k, err := seal.ParseKeys([]byte(seal.FormatKey([seal.KeySize]byte{b})))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// readsSealed makes the task of a test from a runbook with one secret.
func (s *stand) readsSealed(text string, k seal.Keys) {
	s.t.Helper()
	r, err := scripts.Parse("test.yaml", []byte(text))
	if err != nil {
		s.t.Fatal(err)
	}
	v, err := r.BindGiven(scripts.Given{Secrets: map[string]seal.Text{"pw": swordfish}})
	if err != nil {
		s.t.Fatal(err)
	}
	f := r.Freeze(v)
	if err := f.Seal(func(argument string, text seal.Text) (string, error) {
		return k.Seal(string(task1), argument, text)
	}); err != nil {
		s.t.Fatal(err)
	}
	action, err := json.Marshal(f)
	if err != nil {
		s.t.Fatal(err)
	}
	s.q.specs[task1] = jobs.Spec{Inventory: "v7", Timeout: attemptTime, Retry: jobs.DefaultPolicy(), Action: action}
}

func TestASecretReachesItsStepOnStdinAndIsCoveredInAllOutput(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		k := testKeys(t, 1)
		s.readsSealed(telling, k)
		s.unseal = k.Open
		inputs := map[string]string{}
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (r remote.Result, err error) {
			name := c.Shell[strings.LastIndex(c.Shell, "\n")+1:]
			if c.Stdin != nil {
				all, _ := io.ReadAll(c.Stdin)
				inputs[name] = string(all)
			}
			if strings.Contains(c.Shell, swordfish) {
				t.Errorf("the secret is in the text %q", c.Shell)
			}
			_, _ = c.Live.Write([]byte(swordfish))
			// The bounds of the output cut the secret in two, although no output is missing.
			r.Output.Head, r.Output.Tail = []byte("it is "+swordfish[:5]), []byte(swordfish[5:]+"\n")
			if strings.HasPrefix(name, "echo") {
				r.ExitCode = 3
			}
			return r, err
		}
		got := s.one()
		const use = `printf %s "$muster_secret_1"`
		if len(inputs) != 1 || !strings.Contains(inputs[use], "='"+swordfish+"'\n") {
			t.Errorf("stdin: %q, want the secret for %s alone", inputs, use)
		}
		last := s.hosts.started()
		if !strings.HasSuffix(last[len(last)-1], "echo '(secret)'") {
			t.Errorf("ran %q: want the saved value covered", last)
		}
		if got.Outcome != jobs.Failed || !strings.Contains(got.Error, "it is (secret)") ||
			strings.Count(string(got.Output), "it is (secret)\n") != 3 {
			t.Errorf("result %+v", got)
		}
		for _, h := range s.q.record.heard {
			t.Errorf("said before it was covered: %+v", h)
		}
		if text, _ := json.Marshal([]any{got, s.q.asked, s.q.tries}); strings.Contains(string(text), "sword") {
			t.Errorf("the queue was told %s", text)
		}
	})
}

func TestAJobWhoseSecretCannotBeOpenedNeverTouchesItsHost(t *testing.T) {
	for name, c := range map[string]struct {
		unseal func(task, argument, sealed string) (seal.Text, error)
		want   string
	}{
		"no key":      {nil, "this node has no key: name it as secrets.key"},
		"another key": {testKeys(t, 2).Open, "sealed with key"},
		"a moved secret": {func(_, _, sealed string) (seal.Text, error) {
			return testKeys(t, 1).Open("0000000009", "pw", sealed)
		}, "sealed for another task"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stand) {
				s.readsSealed(telling, testKeys(t, 1))
				s.unseal = c.unseal
				s.hosts.dial = func(context.Context, fleet.Host) error {
					t.Error("the host was dialled")
					return errors.New("no")
				}
				got := s.one()
				if got.Outcome != jobs.Failed || got.Class != jobs.ClassOperator ||
					!strings.Contains(got.Error, c.want) || !strings.Contains(got.Error, `argument "pw"`) {
					t.Errorf("%+v, want %q", got, c.want)
				}
			})
		})
	}
}

func TestAStepWhoseSecretsWereCutOffIsTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *stand) {
		k := testKeys(t, 1)
		s.readsSealed(telling, k)
		s.unseal = k.Open
		s.hosts.run = func(_ context.Context, _ fleet.Host, c remote.Command) (r remote.Result, err error) {
			r.Output.Head = []byte("it is there\n")
			if c.Stdin != nil {
				r.ExitCode, r.Output.Head = scripts.SecretsMissing, []byte(scripts.SecretsLost+"\n")
			}
			return r, err
		}
		got := s.one()
		if got.Kind != jobs.KindWait || got.Step != 1 || !strings.Contains(got.Saved, `"again":1`) {
			t.Errorf("the first time: %+v, want it to come again at the step", got)
		}
	})
}
