package scripts

import "testing"

// A library belongs to one runbook, so these two have a copy each.
func TestBothDNSSECRunbooksShareTheirLibrary(t *testing.T) {
	t.Parallel()
	roll, ok := Builtin("dnssec")
	status, also := Builtin("dnssec-status")
	if !ok || !also || roll.Library == "" || roll.Library != status.Library {
		t.Error("the libraries of dnssec and dnssec-status differ: copy the one to the other")
	}
}
