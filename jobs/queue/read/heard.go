package read

import (
	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// Heard is a position in the output of a job. The zero value is the beginning.
//
// An attempt that took over the run of an earlier attempt receives all output of that run again.
// The part that was heard before already has its place, and new output goes behind the line in
// which the attempt reports the takeover. So each byte appears once; and where earlier pieces were
// missed, a reader who starts at the beginning finds them in their place.
type Heard struct {
	last  string     // entry
	token jobs.Token // of the current attempt; 0: there is none
	base  int64      // where its output begins
	end   int64      // of the output that was heard
	open  bool       // the last line that was heard has not ended

	run  jobs.Run // the last run that was reported
	told int64    // number of its bytes that were heard
	laid []laid   // where those bytes are

	taken jobs.Run // the run that the current attempt took over
	mark  int64    // where the output of that run begins in the attempt
	known int64    // bytes of the run that were heard before
}

// laid says where the bytes of a run are, from one of them on.
type laid struct {
	from int64 // in the run
	at   int64 // in the output
}

// At returns the position behind the output that was heard.
func (h *Heard) At() int64 { return h.end }

func (h *Heard) place() string {
	if h.last == "" {
		return "0"
	}
	return h.last
}

// read reads entries and returns their new output, in order.
func (h *Heard) read(list []redis.XMessage) (news jobs.Output) {
	begin := h.end
	for _, e := range list {
		for _, p := range (jobs.Output(h.hear(e))).From(begin) {
			news = news.With(p)
		}
	}
	return news
}

// hear reads an entry and returns its pieces. While an attempt runs, its entries hold pieces of the
// output; at its end one entry holds all output that is kept, and replaces them.
func (h *Heard) hear(e redis.XMessage) []jobs.Piece {
	h.last = e.ID
	if data, ok := e.Values["live"].(string); ok {
		token, end, ok := codec.LiveID(e.ID)
		if !ok {
			return nil
		}
		text, _ := e.Values["runs"].(string)
		runs := codec.ReadRuns(text)
		h.enter(token)
		out := h.takeOver(runs)
		out = append(out, h.lay(end-int64(len(data)), data)...)
		h.learn(runs, end)
		return out
	}
	text, ok := e.Values["said"].(string)
	if !ok {
		// Entries of earlier versions have no head.
		text, _ = e.Values["data"].(string)
		h.enter(0)
		return h.lay(0, text)
	}
	token, gap, runs, data := codec.ReadSaid(text)
	h.enter(token)
	out := h.takeOver(runs)
	out = append(out, h.lay(0, string(data[:gap.At]))...)
	out = append(out, h.lay(int64(gap.At)+gap.Left, string(data[gap.At:]))...)
	whole := int64(len(data)) + gap.Left
	h.learn(runs, whole)
	h.end, h.token = max(h.end, h.base-h.known+whole), 0
	return out
}

// enter switches to an attempt, if it is another one than the current.
func (h *Heard) enter(token jobs.Token) {
	if token == 0 || token != h.token {
		h.base, h.token = h.end, token
		h.taken, h.mark, h.known = jobs.Run{}, 0, 0
	}
}

// takeOver notes that the current attempt took over a run, as soon as the attempt reports that. Its
// report starts a new line.
func (h *Heard) takeOver(runs jobs.Runs) (out []jobs.Piece) {
	run := runs.Taken
	if run.Token == 0 || h.taken.Token != 0 {
		return nil
	}
	h.taken, h.mark = run, runs.Mark
	if !run.Is(h.run) {
		h.run, h.told, h.laid = run, 0, nil
	}
	if h.known = h.told; h.known > 0 {
		if h.open && h.mark == 0 {
			out = []jobs.Piece{{At: h.base, Data: []byte("\n"), Ours: true}}
			h.base++
			h.end = max(h.end, h.base)
		}
		h.mark = 0 // the title of the step was heard before as well
	}
	h.laid = append(h.laid, laid{h.known, h.base + run.At})
	return out
}

// learn notes how much of the last run was heard when the attempt's output had this end.
func (h *Heard) learn(runs jobs.Runs, end int64) {
	run := runs.Last
	size := end - run.At
	switch {
	case run.Token == 0 || size <= 0:
	case run.Is(h.run):
		h.told = max(h.told, size)
	default:
		h.run, h.told, h.laid = run, size, []laid{{0, h.base - h.known + run.At}}
	}
}

// lay returns the places of bytes at a known offset in the output of the current attempt.
func (h *Heard) lay(at int64, data string) (out []jobs.Piece) {
	if len(data) == 0 {
		return nil
	}
	h.open = data[len(data)-1] != '\n'
	p := jobs.Piece{At: at, Data: []byte(data)}
	put := func(p jobs.Piece, shift int64) {
		if p.At += shift; len(p.Data) > 0 {
			out, h.end = append(out, p), max(h.end, p.End())
		}
	}
	if h.taken.Token != 0 {
		var part jobs.Piece
		part, p = p.Cut(h.mark)
		put(part, h.base)
		part, p = p.Cut(h.taken.At)
		part.Ours = true
		put(part, h.base)
		for i := 0; h.known > 0 && i+1 < len(h.laid); i++ {
			part, p = p.Cut(h.taken.At + h.laid[i+1].from)
			put(part, h.laid[i].at-h.laid[i].from-h.taken.At)
		}
	}
	put(p, h.base-h.known)
	return out
}
