package queue

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"muster/jobs"
)

// ErrOpen says that a job has not ended.
var ErrOpen = errors.New("it has not ended")

// ErrForgotten says that Redis does not know a job any more.
var ErrForgotten = errors.New("it is not known in Redis any more")

// OrderAsk orders that the host of a job which ended unknown is asked how it ended. note says
// who orders it, and why; a worker of the zone carries it out. The error wraps ErrOpen if the
// job has not ended, and ErrForgotten if it ended more than a day ago.
func (q *Queue) OrderAsk(ctx context.Context, id jobs.ID, note string) (jobs.AskOrdered, error) {
	out := jobs.AskOrdered{Job: id}
	zone, err := q.jobZone(ctx, id)
	if err != nil {
		return out, err
	}
	r, err := q.script(ctx, scriptAsk, zone, "order", string(id), oneLine(note))
	if err != nil {
		return out, err
	}
	status, what := r.text(), r.text()
	switch {
	case r.err != nil:
		return out, fmt.Errorf("ask about job %s: %w", id, r.err)
	case status == absent:
		return out, fmt.Errorf("job %s: %w", id, ErrForgotten)
	case status == "open":
		return out, fmt.Errorf("job %s is %s: %w", id, what, ErrOpen)
	}
	out.Already = status == "already"
	if status == "known" {
		out.Known = jobs.Outcome(what)
	}
	return out, nil
}

// AnswerAsk stores what a worker found on the host. The error wraps ErrStale, and nothing is
// stored, if the order was answered before or is not the one that the worker has.
func (q *Queue) AnswerAsk(ctx context.Context, zone string, f jobs.Reading) error {
	r, err := q.script(ctx, scriptAsk, zone, answerArgs(f)...)
	if err != nil {
		return err
	}
	status := r.text()
	r.text()
	if r.err != nil {
		return fmt.Errorf("answer about job %s: %w", f.Job, r.err)
	}
	if status == "stale" {
		return fmt.Errorf("answer about job %s: %w", f.Job, ErrStale)
	}
	return nil
}

// answerArgs are those of ask.lua for an answer.
func answerArgs(f jobs.Reading) []any {
	over, began := "", ""
	if f.Over {
		over = "1"
	}
	if f.Began != 0 {
		began = strconv.FormatInt(int64(f.Began), 10)
	}
	args := []any{"answer", string(f.Job), int64(f.Token), string(f.Answer), oneLine(f.Words), began,
		over}
	return append(args, endArgs(f.End)...)
}

// endArgs are outcome, class, exit code, error, output and note of an end; nil: it is not known.
func endArgs(end *jobs.Result) []any {
	if end == nil {
		return []any{"", "", "", "", "", ""}
	}
	exit := ""
	if end.ExitCode != nil {
		exit = strconv.Itoa(*end.ExitCode)
	}
	return []any{string(end.Outcome), string(end.Class), exit, oneLine(end.Error), said(*end),
		oneLine(end.Note)}
}

// askOf is the last order about a job; nil: there was none.
func (q *Queue) askOf(ctx context.Context, zone string, id jobs.ID) (*jobs.Ask, error) {
	text, err := q.rdb.HGet(ctx, zoneKey(zone, "task:", string(id.Task())), "ask:"+id.Host()).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, q.say("job", err)
	}
	return readAsk(text), nil
}

// readAsk reads an order as ask.lua keeps it. What cannot be read is none.
func readAsk(text string) *jobs.Ask {
	lines := strings.SplitN(text, "\n", 4)
	if len(lines) != 4 {
		return nil
	}
	since, _, _ := strings.Cut(lines[0], " ")
	at, err := jobs.ParseMicros(since)
	if err != nil {
		return nil
	}
	out := &jobs.Ask{At: jobs.TimeOf(at), Note: lines[1], Words: lines[3]}
	if when, word, ok := strings.Cut(lines[2], " "); ok {
		if at, err = jobs.ParseMicros(when); err != nil {
			return nil
		}
		out.Answered, out.Answer = jobs.TimeOf(at), jobs.Answer(word)
	}
	return out
}
