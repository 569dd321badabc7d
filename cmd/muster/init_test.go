package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"muster/api"
	"muster/cli/founding"
)

// serverkeyOfOthers returns the public key of the log of another installation.
func serverkeyOfOthers(t *testing.T) string {
	t.Helper()
	m, err := founding.MakeKey(t.TempDir()+"/key", 0)
	if err != nil {
		t.Fatal(err)
	}
	return m.AuditKey
}

// A server needs no more than `muster init` to sign its log, and `muster audit verify` examines the
// log by the public key that init prints.
func TestAServerWithTheKeyOfInitSignsItsLog(t *testing.T) {
	t.Parallel()
	h := newCellar(t, "hosts: []\n")
	if err := os.Remove(h.file("server.key")); err != nil {
		t.Fatal(err)
	}
	var one, two struct {
		Made     bool
		AuditKey string `json:"audit_key"`
	}
	if code := h.query(&one, "init", "--file", h.file("server.key")); code != 0 || !one.Made {
		t.Fatalf("init: exit %d, %+v", code, one)
	}
	if code := h.query(&two, "init", "--file", h.file("server.key")); code != 0 || two.Made ||
		two.AuditKey != one.AuditKey {
		t.Errorf("init again: exit %d, %+v, was %+v", code, two, one)
	}
	h.write("keys", one.AuditKey+"\n")
	h.server = h.start("server", "--config", h.file("muster.yaml"))
	h.server.await("server listens")
	if _, code := h.muster("halt", "--reason", "a first order"); code != 0 {
		t.Fatalf("halt: exit %d", code)
	}
	for late, tick := h.late(), time.Tick(commandEvery); ; {
		var s api.AuditState
		h.query(&s, "audit", "status")
		if s.Signed > 0 {
			if len(s.Keys) != 1 || s.Keys[0] != one.AuditKey {
				t.Errorf("the log is signed by %q, want %q", s.Keys, one.AuditKey)
			}
			break
		}
		select {
		case <-late:
			t.Fatalf("no checkpoint is signed: %+v", s)
		case <-tick:
		}
	}
	out, code := h.muster("audit", "verify", "--key", h.file("keys"))
	if code != 0 || !strings.Contains(out, "1 checkpoint fit") {
		t.Errorf("verify: exit %d, %s", code, out)
	}
	h.write("keys", serverkeyOfOthers(t)+"\n")
	if out, code := h.muster("audit", "verify", "--key", h.file("keys")); code == 0 {
		t.Errorf("verify by the key of another installation: %s", out)
	}
	page, _ := h.muster("audit", "ls", "-o", "json")
	var list api.AuditPage
	if err := json.Unmarshal([]byte(page), &list); err != nil || len(list.Entries) == 0 {
		t.Errorf("entries: %v, %s", err, page)
	}
}
