package scribe_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"muster/audit"
	"muster/history/ledger"
	"muster/server/scribe"
)

// hanging is a book whose database takes nothing and answers nothing.
type hanging struct{ scribe.Book }

// Append returns when the caller gives up.
func (hanging) Append(ctx context.Context, _ []audit.Draft, _ ledger.Sign) error {
	<-ctx.Done()
	return ctx.Err()
}

// An order does not wait for a database that hangs: its entry is durable in the spool.
func TestADatabaseThatHangsIsGivenUp(t *testing.T) {
	t.Parallel()
	s := scribe.New(scribe.Needs{Book: hanging{}, Dir: t.TempDir(), Who: func() string { return "s1" },
		Log: hclog.NewNullLogger(), Now: time.Now, Patience: time.Millisecond})
	t.Cleanup(func() { s.Close(context.Background()) })
	if _, err := s.Write(t.Context(), order("task.submit"), false); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Spooled != 1 || st.Away == "" {
		t.Errorf("%+v, want one entry in the spool and why", st)
	}
}
