package approvals

import (
	"context"
	"fmt"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"muster/audit"
	"muster/history/ledger"
	"muster/jobs"
	"muster/server/scribe"
	"muster/server/web"
)

// A writer to Redis can put back what somebody took away there: a signature, or a task that was
// refused. The audit log knows better.

// entriesMax bounds the entries about the signatures of one task that are looked at.
const entriesMax = 500

// takenBack returns the people whose last word about a task in the audit log takes their signature
// back. It returns an answer that refuses the task if somebody has refused it.
func takenBack(ctx context.Context, l *ledger.Ledger, by *scribe.Scribe, id jobs.TaskID) (
	names []string, err error) {
	if l == nil {
		return nil, nil
	}
	if st := by.State(); st.Away != "" { // the last words may be in the spool
		return nil, web.Away("the audit log is in its spool, so nobody knows which signatures were " +
			"taken back; your signature is kept: approve it again later")
	}
	list, err := l.Page(ctx, ledger.Filter{Verb: "approval.*", Object: "task/" + string(id),
		EntriesMax: entriesMax})
	if err != nil {
		return nil, web.Away(fmt.Sprintf("the audit log cannot be read, so nobody knows which "+
			"signatures were taken back: %v; your signature is kept: approve it again later", err))
	}
	if len(list) == entriesMax {
		return nil, web.Away(fmt.Sprintf("the audit log has too much about task %s: submit it anew", id))
	}
	return lastWords(id, list)
}

// lastWords finds the last word of each person in entries, of which the newest is the first.
func lastWords(id jobs.TaskID, list []ledger.Row) (names []string, err error) {
	spoke := map[string]bool{}
	for _, r := range list {
		name := ""
		if r.Record.Person != nil {
			name = r.Record.Person.Name
		}
		// A refusal that failed half way has still been given. A signature that was not taken is none.
		switch {
		case r.Verb == "approval.refuse":
			return nil, huma.Error409Conflict(fmt.Sprintf("task %s was refused at %s, says the audit "+
				"log, and somebody has brought it back in Redis: submit it anew", id,
				r.At.UTC().Format(time.RFC3339)))
		case name == "" || spoke[name]: // erased, and whoever signs has one
		case r.Verb == "approval.withdraw":
			names, spoke[name] = append(names, name), true
		case r.Ended == nil || r.Ended.Result == audit.Done:
			spoke[name] = true
		}
	}
	return names, nil
}
