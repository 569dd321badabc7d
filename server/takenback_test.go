package server_test

import (
	"net/http"
	"strings"
	"testing"

	"muster/jobs/queue/codec"
	"muster/jobs/queue/keys"
	"muster/server"
	"muster/testkit/redistest"
)

// A writer to Redis puts back a signature that somebody took away, and a task that was refused. The
// server believes the audit log.
func TestWhatWasTakenBackStaysSo(t *testing.T) {
	t.Parallel()
	a := audited(t)
	policy := policyOf(t, rolesPolicy())
	rules := trusting(t, "rules: [{people: 2, mode: require}]")
	_, cfg := redistest.StartMini(t)
	w := crowd{start(t, setup{redis: &cfg, inventory: fixed(twoCustomers()), more: func(d *server.Deps) {
		d.Policy, d.Trust = policy, rules
		a.write(d)
	}}), map[string]string{}}
	d := w.hold("fw-a[1,2]")
	zone, key := redistest.Raw(t, cfg, "default"), keys.Zone("default", "task:", string(d.Task))
	if status, text := w.endorse("approver", 0, d); status != 200 || !strings.Contains(text, `"missing":1`) {
		t.Fatalf("%d: %s", status, text)
	}
	kept := zone.HGet(t.Context(), key, codec.FieldSignatures).Val()
	res, text := w.raw("DELETE", "/v1/approvals/"+string(d.Task)+"/signature", nil, w.bearer("approver"))
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%d: %s", res.StatusCode, text)
	}
	if err := zone.HSet(t.Context(), key, codec.FieldSignatures, kept).Err(); err != nil || kept == "" {
		t.Fatalf("%q is put back: %v", kept, err)
	}
	status, said := w.endorse("approver-acme", 1, d)
	if status != 200 || !strings.Contains(said, `"missing":1`) || strings.Contains(said, `"committed":true`) {
		t.Fatalf("a signature that was put back: %d: %s", status, said)
	}
	// A second signature, given after that, counts.
	if status, text := w.endorse("approver", 0, d); status != 200 || !strings.Contains(text, `"committed":true`) {
		t.Errorf("signed again: %d: %s", status, text)
	}
}
