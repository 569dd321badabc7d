package history

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/api"
	"muster/jobs"
)

// recentMax bounds the successes that make an estimate: the last ten.
const recentMax = 10

// Kind identifies jobs that take about equally long.
type Kind struct {
	Work     string `json:"work"` // see jobs.WorkOf
	Model    string `json:"model"`
	Customer string `json:"customer"`
}

// Estimate is the time that the last successes of a kind took.
type Estimate struct {
	Kind
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	N   int           `json:"n"` // successes that it comes from
}

// estimate returns the estimate of some durations.
func estimate(k Kind, recent []time.Duration) Estimate {
	list := slices.Sorted(slices.Values(recent))
	return Estimate{k, rank(list, 0.5), rank(list, 0.9), len(list)}
}

// took returns the time that a job was at work, if it predicts other jobs: the job succeeded
// without a retry. Waiting for a worker, a window or a person is no work. The waits of its runbook
// count, and so do the pauses between its probes.
//
// If its worker did not report how the time was spent, the whole time from its start counts; if
// the job was deferred before it did anything, the time from when it was due again.
func took(j api.PastJob) (time.Duration, bool) {
	if j.Outcome != jobs.Succeeded || j.Tries > 0 || j.Started.IsZero() || j.Finished.IsZero() {
		return 0, false
	}
	if d := j.Times.Of(jobs.Connecting, jobs.Acting, jobs.Verifying, jobs.Pausing); d > 0 {
		return d, true
	}
	from := j.Started.Time
	if j.Attempt == 1 && j.Due.After(from) {
		from = j.Due.Time
	}
	d := j.Finished.Sub(from)
	return d, d >= 0
}

// learn adds the times of jobs to the estimates, and returns the estimates that changed.
func (s *Store) learn(ctx context.Context, tx *sql.Tx, list []api.PastJob,
	now time.Time) ([]Estimate,
	error) {
	fresh := map[Kind][]api.PastJob{}
	for _, j := range list {
		if _, ok := took(j); ok && j.Proof != api.NotProven &&
			j.Asked != nil && j.Asked.Ran != nil && j.Asked.Ran.Work != "" {
			k := Kind{clean(j.Asked.Ran.Work), clean(j.Model), clean(j.Customer)}
			fresh[k] = append(fresh[k], j)
		}
	}
	var changed []Estimate
	var rows [][]any
	for k, list := range fresh {
		before, err := recentOf(ctx, tx, k)
		if err != nil {
			return nil, fmt.Errorf("estimates: %w", err)
		}
		slices.SortFunc(list, func(a, b api.PastJob) int {
			return b.Finished.Compare(
				a.Finished.Time)
		})
		var recent []time.Duration
		for _, j := range list[:min(len(list), recentMax)] {
			d, _ := took(j)
			recent = append(recent, d)
		}
		recent = append(recent, before...)
		recent = recent[:min(len(recent), recentMax)]
		rows = append(rows, []any{k.Work, k.Model, k.Customer, writeRecent(recent),
			int64(jobs.MicrosOf(now))})
		changed = append(changed, estimate(k, recent))
	}
	t := table{"estimates", strings.Fields("work model customer recent at"),
		replace("work, model, customer", "recent", "at")}
	return changed, s.insert(ctx, tx, t, rows)
}

func recentOf(ctx context.Context, tx *sql.Tx, k Kind) ([]time.Duration, error) {
	rows, err := tx.QueryContext(ctx, `select recent from estimates where work = $1 and model = $2
		and customer = $3`, k.Work, k.Model, k.Customer)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var text string
	if rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return readRecent(text)
}

func writeRecent(list []time.Duration) string {
	words := make([]string, len(list))
	for i, d := range list {
		words[i] = strconv.FormatInt(int64(d), 10)
	}
	return strings.Join(words, " ")
}

func readRecent(text string) ([]time.Duration, error) {
	var out []time.Duration
	for _, w := range strings.Fields(text) {
		n, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			return nil, err
		}
		out = append(out, time.Duration(n))
	}
	return out, nil
}

// estimatesMax bounds the stored estimates; those that changed last are kept. A task that runs
// once, with arguments that never occur again, leaves one for each model and customer.
const estimatesMax = 20_000

// ForgetEstimates deletes the estimates that changed first, if there are too many, and reports
// whether it deleted any.
func (s *Store) ForgetEstimates(ctx context.Context) (bool, error) {
	cut := int64(0)
	text := fmt.Sprintf("select at from estimates order by at desc limit 1 offset %d", estimatesMax)
	err := s.rows(ctx, "forget", text, nil, func(scan func(...any) error) error { return scan(&cut) })
	if err != nil || cut == 0 {
		return false, err
	}
	return true, s.tx(ctx, "forget", func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "delete from estimates where at <= $1", cut)
		return err
	})
}

// Estimates lists all estimates.
func (s *Store) Estimates(ctx context.Context) ([]Estimate, error) {
	var out []Estimate
	err := s.rows(ctx, "estimates", "select work, model, customer, recent from estimates", nil,
		func(scan func(...any) error) error {
			var k Kind
			var text string
			if err := scan(&k.Work, &k.Model, &k.Customer, &text); err != nil {
				return err
			}
			recent, err := readRecent(text)
			out = append(out, estimate(k, recent))
			return err
		})
	slices.SortFunc(out, func(a, b Estimate) int {
		return cmp.Or(cmp.Compare(a.Work, b.Work), cmp.Compare(a.Model, b.Model),
			cmp.Compare(a.Customer, b.Customer))
	})
	return out, err
}
