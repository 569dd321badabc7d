package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"

	"muster/api"
	"muster/internal/sshsig"
	"muster/jobs"
	"muster/testkit/passkeytest"
	"muster/trust"
)

// Nodes run a job that a person has signed with a passkey. The server takes no signature over another
// order.
func TestNodesBelieveAPasskey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "  - {runbooks: [exec], people: 1, mode: require}\n  - {level: server, mode: require}\n")
	mine := passkeytest.New(t, "muster.example")
	line, err := trust.PasskeyLine("user:cem", mine.SPKI(t), mine.Site)
	if err != nil {
		t.Fatal(err)
	}
	signers, err := os.ReadFile(o.file("trust/allowed_signers"))
	if err != nil {
		t.Fatal(err)
	}
	o.write("trust/allowed_signers", string(signers)+line+"\n")
	o.master()
	first, id := o.hold("ann", "another"), o.hold("ann", "reviewed")
	if code, text := o.endorse("cem", mine, first, id); code != http.StatusUnprocessableEntity {
		t.Errorf("an order that was not signed: %d: %s", code, text)
	}
	if code, text := o.endorse("cem", mine, id, id); code != http.StatusOK {
		t.Errorf("the order: %d: %s", code, text)
	}
	if got := o.wait(id); got.Outcomes[jobs.Succeeded] != 3 {
		t.Errorf("its jobs: %+v", got.Outcomes)
	}
}

// endorse sends the signature of a passkey over the order of one task for another one.
func (o *office) endorse(name string, by passkeytest.Passkey, signed, task jobs.TaskID) (int, string) {
	o.t.Helper()
	var d, want api.HeldDetail
	o.query(&d, "approvals", "show", string(signed))
	o.query(&want, "approvals", "show", string(task))
	client := passkeytest.Client(sshsig.Challenge(trust.NamespaceOrder, d.Order), "")
	data, signature := by.Sign(o.t, client, passkeytest.Touched|passkeytest.Verified)
	body, err := json.Marshal(api.EndorseRequest{Hash: want.Hash, Passkey: &api.PasskeyProof{
		Client: []byte(client), Authenticator: data, Signature: signature}})
	if err != nil {
		o.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "http://localhost/v1/approvals/"+string(task),
		bytes.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+o.tokens[name])
	r.Header.Set("Content-Type", "application/json")
	res, err := o.client().Do(r)
	if err != nil {
		o.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
