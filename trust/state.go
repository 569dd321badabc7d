package trust

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"muster/internal/serverkey"
	"muster/jobs"
)

// A State is the progress of a job, as a child hands it to the next one through Redis.
type State struct {
	Job   jobs.ID
	Step  int
	Saved string // JSON; empty: nothing was saved
}

// The nodes put a MAC into the saved data, with the time. It is their first member, which nothing
// else writes, and no reader of the data needs it.
const (
	macBegins = `{"mac":"`
	macEnds   = `"`
)

// fresh reports whether the job has not begun.
func (s State) fresh() bool { return s.Step == 0 && s.Saved == "" }

// parts returns the texts that a MAC covers; saved has no MAC.
func (s State) parts(at, saved string) []string {
	return []string{string(s.Job), strconv.Itoa(s.Step), at, saved}
}

// Seal returns the saved data of a state with a MAC over all of it. Data that have a MAC stay as
// they are: a node vouches for nothing that it only passes on.
func (s State) Seal(k serverkey.Keys, now time.Time) string {
	saved := s.Saved
	if s.fresh() || strings.HasPrefix(saved, macBegins) {
		return saved
	}
	if saved == "" {
		saved = "{}"
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac := k.MAC(serverkey.States, s.parts(at, saved)...)
	rest := saved[1:]
	if rest != "}" {
		rest = "," + rest
	}
	return macBegins + at + " " + mac + macEnds + rest
}

// Check returns an error unless a node wrote the state, or the job has not begun.
func (s State) Check(k serverkey.Keys, now time.Time) error {
	if s.fresh() {
		return nil
	}
	text, ok := strings.CutPrefix(s.Saved, macBegins)
	vouched, rest, found := strings.Cut(text, macEnds)
	at, mac, apart := strings.Cut(vouched, " ")
	if !ok || !found || !apart {
		return errors.New("no node has vouched for the state of the job")
	}
	plain := "{" + strings.TrimPrefix(rest, ",")
	if k.Check(serverkey.States, mac, s.parts(at, plain)...) != nil {
		return errors.New("the state of the job is not what a node with the same node.key wrote")
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return fmt.Errorf("the state of the job: %w", err)
	}
	if age := now.Sub(time.Unix(seconds, 0)); age > Validity {
		return fmt.Errorf("the state of the job is %s old: at most %s", age.Round(time.Hour), Validity)
	}
	return nil
}
