package worker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"muster/jobs"
	"muster/worker/said"
)

const (
	// voicesAfter is the age of an attempt at which the clerk begins to pass on its live output. A
	// shorter attempt costs no call.
	voicesAfter = time.Second

	// voicesEvery is the least time between two calls. One call is for all attempts.
	voicesEvery = 500 * time.Millisecond

	// voicesPause is the pause after a call that failed.
	voicesPause = 5 * time.Second

	// voicesMax is the size of a full call, in bytes. The rest of the output goes with the next
	// call, as far as it still waits then.
	voicesMax = 256 << 10
)

// A Listener takes the live output of hosts. It returns the jobs of which it wants no more output.
// Output that it did not take need not be sent again.
type Listener interface {
	Speak(ctx context.Context, zone string, list []jobs.Speech) ([]jobs.ID, error)
}

// voices passes on the live output of running jobs. It belongs to the goroutine of the clerk,
// except the call itself; there is one call at a time. Nobody waits for the call: new output waits
// in the voice of its attempt, within bounds.
type voices struct {
	next    time.Duration // the earliest time of the next call, on the boot clock
	calling bool
	answers chan voicesAnswer
	calls   sync.WaitGroup
	cancel  context.CancelFunc // of the call
}

type voicesAnswer struct {
	mute []jobs.ID
	err  error
}

func newVoices() voices {
	return voices{answers: make(chan voicesAnswer, 1), cancel: func() {}}
}

// end cancels the call that is under way.
func (v *voices) end() {
	v.cancel()
	v.calls.Wait()
}

// speakAt returns when to look for live output again; 0: no job can have any.
func (c *clerk) speakAt() time.Duration {
	v := &c.lines.voices
	if v.calling || c.mode == stopping {
		return 0
	}
	oldest := time.Duration(0)
	for _, a := range c.inHand {
		if oldest == 0 || a.Began() < oldest {
			oldest = a.Began()
		}
	}
	if oldest == 0 {
		return 0
	}
	return max(oldest+voicesAfter, v.next)
}

// speak passes on the live output of the running jobs, if it is time to.
func (c *clerk) speak(ctx context.Context) {
	at := c.speakAt()
	if at == 0 || c.Clock() < at {
		return
	}
	v := &c.lines.voices
	v.next = c.Clock() + voicesEvery
	list := c.speeches()
	if len(list) == 0 {
		return
	}
	v.calling = true
	ctx, v.cancel = context.WithTimeout(ctx, c.cfg.Call)
	v.calls.Go(func() {
		mute, err := c.Queue.Speak(ctx, c.calls.zone, list)
		v.answers <- voicesAnswer{mute, err} // there is room: one call at a time
	})
}

// speeches takes the output from the voices, until a call is full. The voice that has waited for
// longest comes first.
func (c *clerk) speeches() []jobs.Speech {
	var old []*said.Voice
	for _, a := range c.inHand {
		if c.Clock()-a.Began() >= voicesAfter {
			old = append(old, a.Voice())
		}
	}
	slices.SortFunc(old, func(x, y *said.Voice) int { return cmp.Compare(x.Turn, y.Turn) })
	var list []jobs.Speech
	size := 0
	for _, v := range old {
		if size >= voicesMax {
			break
		}
		for _, s := range v.Speeches() {
			list, size = append(list, s), size+len(s.Data)
			v.Turn = c.Clock()
		}
	}
	return list
}

// spoke takes the answer to a call.
func (c *clerk) spoke(answer voicesAnswer) {
	v := &c.lines.voices
	v.calling = false
	v.cancel()
	if answer.err != nil {
		v.next = c.Clock() + voicesPause
		c.Log.Debug("the live output of hosts was not passed on, it will come with their results",
			"zone", c.calls.zone, "error", answer.err)
		return
	}
	for _, a := range c.inHand {
		for _, id := range answer.mute {
			if a.Grant().Job == id {
				a.Voice().Silence()
			}
		}
	}
}
