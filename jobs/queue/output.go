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

// speakMax bounds what one call of Speak may carry: twice as many as a worker has
// slots.
const speakMax = 128

// Speak passes on what hosts say in jobs that run. It returns those jobs whose
// attempt has ended, or is not the latest any more. What a call that failed
// carried is left out: the result of the attempt brings all that is kept.
func (q *Queue) Speak(ctx context.Context, zone string, list []jobs.Speech) ([]jobs.ID, error) {
	if len(list) > speakMax {
		return nil, fmt.Errorf("speak: %d at once: at most %d", len(list), speakMax)
	}
	args := make([]any, 0, 1+6*len(list))
	args = append(args, len(list))
	for _, s := range list {
		args = append(args, string(s.Job), int64(s.Token), s.End, numbers(s.Drop), s.Data,
			runsText(s.Runs))
	}
	r, err := q.script(ctx, scripts.speak, zone, args...)
	if err != nil {
		return nil, err
	}
	r.micros()
	var stale []jobs.ID
	for len(r.v) > 0 && r.err == nil {
		stale = append(stale, jobs.ID(r.text()))
	}
	return stale, r.err
}

func numbers(list []int64) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// Output is what the host of a job said, attempt after attempt; of an attempt that
// runs, as far as it was heard.
func (q *Queue) Output(ctx context.Context, id jobs.ID) (jobs.Output, error) {
	zone, err := q.jobZone(ctx, id)
	if err != nil {
		return nil, err
	}
	all, err := q.Outputs(ctx, zone, []jobs.ID{id})
	return all[id], err
}

// Outputs is what the hosts of several jobs of one zone said.
func (q *Queue) Outputs(ctx context.Context, zone string, ids []jobs.ID) (
	map[jobs.ID]jobs.Output, error) {
	fresh := make(map[jobs.ID]*Heard, len(ids))
	for _, id := range ids {
		fresh[id] = &Heard{}
	}
	return q.Listen(ctx, zone, fresh)
}

// Listen reads what was said in jobs of one zone since they were last listened to,
// and notes how far that is. Of jobs with no news there is nothing in the answer.
func (q *Queue) Listen(ctx context.Context, zone string, list map[jobs.ID]*Heard) (
	map[jobs.ID]jobs.Output, error) {
	if len(list) == 0 {
		return nil, nil
	}
	prefix := zoneKey(zone, "out:", "")
	streams := make([]string, 2*len(list))
	i := 0
	for id, h := range list {
		streams[i], streams[len(list)+i] = prefix+string(id), h.place()
		i++
	}
	found, err := q.rdb.XRead(ctx, &redis.XReadArgs{Streams: streams, Block: -1}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, q.say("output", err)
	}
	out := make(map[jobs.ID]jobs.Output, len(found))
	for _, s := range found {
		id := jobs.ID(strings.TrimPrefix(s.Stream, prefix))
		if news := list[id].read(s.Messages); len(news) > 0 {
			out[id] = news
		}
	}
	return out, nil
}

// liveID reads the id of an entry of a running attempt: its token, and how much
// its host had said by then.
func liveID(id string) (token jobs.Token, end int64, ok bool) {
	first, second, _ := strings.Cut(id, "-")
	t, err := jobs.ParseMicros(first)
	n, failed := strconv.ParseInt(second, 10, 64)
	return jobs.Token(t), n, err == nil && failed == nil
}

// said is the record of an attempt's output: a line with its token and its gap,
// and maybe its runs, then the bytes; empty if nothing was said.
func said(r jobs.Result) []byte {
	data, gap := r.Output, r.Gap
	if len(data) > outputMax {
		data, gap.At = data[:outputMax], min(gap.At, outputMax)
	}
	if len(data) == 0 && gap.Left == 0 {
		return nil
	}
	head := fmt.Sprintf("%d %d %d", r.Token, gap.At, gap.Left)
	if runs := runsText(r.Runs); runs != "" {
		head += " " + runs
	}
	return append([]byte(head+"\n"), data...)
}

// readSaid reads a record. What cannot be read is taken for output.
func readSaid(text string) (token jobs.Token, gap jobs.Gap, runs jobs.Runs, data []byte) {
	head, rest, ok := strings.Cut(text, "\n")
	var t int64
	n, err := fmt.Sscanf(head, "%d %d %d", &t, &gap.At, &gap.Left)
	if !ok || n != 3 || err != nil || gap.Left < 0 || gap.At < 0 || gap.At > len(rest) {
		return 0, jobs.Gap{}, jobs.Runs{}, []byte(text)
	}
	if words := strings.SplitN(head, " ", 4); len(words) == 4 {
		runs = readRuns(words[3])
	}
	return jobs.Token(t), gap, runs, []byte(rest)
}
