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

// The state of a job is the step that it has reached and the data of its steps, as a child hands
// them to the next one through Redis. The nodes put a MAC into the data, with the time. It is their
// first member, which nothing else writes, and no reader of the data needs it.
const (
	macBegins = `{"mac":"`
	macEnds   = `"`
)

// SealState returns the data of a job's steps with a MAC over them and the step. Data that have one
// stay as they are: who only passes them on vouches for nothing.
func SealState(k serverkey.Keys, id jobs.ID, step int, saved string, now time.Time) string {
	if step == 0 && saved == "" || strings.HasPrefix(saved, macBegins) {
		return saved
	}
	if saved == "" {
		saved = "{}"
	}
	at := strconv.FormatInt(now.Unix(), 10)
	mac := k.MAC(serverkey.States, string(id), strconv.Itoa(step), at, saved)
	rest := saved[1:]
	if rest != "}" {
		rest = "," + rest
	}
	return macBegins + at + " " + mac + macEnds + rest
}

// CheckState says why the state of a job was not written by a node; nil: it was, or the job has not
// begun.
func CheckState(k serverkey.Keys, id jobs.ID, step int, saved string, now time.Time) error {
	if step == 0 && saved == "" {
		return nil
	}
	text, ok := strings.CutPrefix(saved, macBegins)
	vouched, rest, found := strings.Cut(text, macEnds)
	at, mac, apart := strings.Cut(vouched, " ")
	if !ok || !found || !apart {
		return errors.New("no node has vouched for the state of the job")
	}
	plain := "{" + strings.TrimPrefix(rest, ",")
	if err := k.Check(serverkey.States, mac, string(id), strconv.Itoa(step), at, plain); err != nil {
		return fmt.Errorf("the state of the job: %w", err)
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
