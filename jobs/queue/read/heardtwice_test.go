package read

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"muster/jobs"
	"muster/jobs/queue/codec"
)

// Output that an attempt repeats from a run that it took over already has its place. A later reader
// also finds the parts there that were missed before; a reader who followed does not go back.
func TestARunThatWasTakenOverIsHeardOnce(t *testing.T) {
	t.Parallel()
	first := jobs.Run{Token: 10, Step: 2, At: 2}
	taken := jobs.Run{Token: 10, Step: 2, At: 4}
	live := func(id, data string, runs jobs.Runs) redis.XMessage {
		return redis.XMessage{ID: id, Values: map[string]any{"live": data, "runs": codec.RunsText(runs)}}
	}
	lost := []redis.XMessage{ // bytes 2 to 5 of the run were not heard
		live("10-4", "t\nab", jobs.Runs{Last: first}),
		live("10-8", "f\n", jobs.Runs{Last: first}),
	}
	second := live("20-9", "t\nm\nabcde", jobs.Runs{Taken: taken, Mark: 2, Last: taken})
	end := redis.XMessage{ID: "30-1", Values: map[string]any{"said": string(codec.SaidOf(jobs.Result{Token: 20,
		Kind: jobs.KindEnd, Said: jobs.Said{Output: []byte("t\nm\nabcdf\ng\nu\n"),
			Runs: jobs.Runs{Taken: taken, Mark: 2}}}))}}
	piece := func(at int64, text string, ours bool) jobs.Piece {
		return jobs.Piece{At: at, Data: []byte(text), Ours: ours}
	}
	want := func(who string, got jobs.Output, want ...jobs.Piece) {
		t.Helper()
		if diff := cmp.Diff(jobs.Output(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", who, diff)
		}
	}
	var follower, reader, stranger Heard
	want("of the lost attempt", follower.read(lost), piece(0, "t\nab", false), piece(6, "f\n", false))
	want("of what is repeated", follower.read([]redis.XMessage{second}), piece(8, "t\nm\n", true))
	want("of the end", follower.read([]redis.XMessage{end}), piece(12, "g\nu\n", false))
	all := reader.read(append(lost, end))
	want("from the beginning", all, piece(0, "t\nab", false), piece(4, "cd", false),
		piece(6, "f\n", false), piece(8, "t\nm\n", true), piece(12, "g\nu\n", false))
	want("as it is compared", all.Theirs(), piece(0, "t\nab", false), piece(4, "cd", false),
		piece(6, "f\n", false), piece(8, "g\nu\n", false))
	// The output of a run that nobody heard, or of another run, appears in full.
	want("of a stranger", stranger.read([]redis.XMessage{live("10-4", "t\nab", jobs.Runs{}), end}),
		piece(0, "t\nab", false), piece(4, "t\n", false), piece(6, "m\n", true), piece(8, "abcdf\ng\nu\n", false))
	if follower.At() != reader.At() {
		t.Errorf("one is at %d, the other at %d", follower.At(), reader.At())
	}
}
