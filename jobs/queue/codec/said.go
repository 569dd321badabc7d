package codec

import (
	"fmt"
	"strconv"
	"strings"

	"muster/jobs"
)

// RunsText encodes the known facts about runs in seven numbers; no facts become the empty text.
func RunsText(r jobs.Runs) string {
	if r == (jobs.Runs{}) {
		return ""
	}
	return Numbers([]int64{r.Mark, int64(r.Taken.Token), int64(r.Taken.Step), r.Taken.At,
		int64(r.Last.Token), int64(r.Last.Step), r.Last.At})
}

// placeMax bounds the offsets that ReadRuns accepts.
const placeMax = 1 << 50

// ReadRuns decodes the facts about runs. From a text that it cannot read it returns none.
func ReadRuns(text string) jobs.Runs {
	words := strings.Fields(text)
	if len(words) != 7 {
		return jobs.Runs{}
	}
	var n [7]int64
	for i, word := range words {
		var err error
		if n[i], err = strconv.ParseInt(word, 10, 64); err != nil || n[i] < 0 {
			return jobs.Runs{}
		}
	}
	if max(n[0], n[3], n[6]) > placeMax || n[0] > n[3] {
		return jobs.Runs{}
	}
	return jobs.Runs{
		Mark:  n[0],
		Taken: jobs.Run{Token: jobs.Token(n[1]), Step: int(n[2]), At: n[3]},
		Last:  jobs.Run{Token: jobs.Token(n[4]), Step: int(n[5]), At: n[6]},
	}
}

// Numbers returns numbers separated by blanks, as the script speak reads them.
func Numbers(list []int64) string {
	var b strings.Builder
	for i, n := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.FormatInt(n, 10))
	}
	return b.String()
}

// LiveID reads the id of a stream entry from a running attempt: the attempt's token, and the number
// of bytes that its host had written by then.
func LiveID(id string) (token jobs.Token, end int64, ok bool) {
	first, second, _ := strings.Cut(id, "-")
	t, err := jobs.ParseMicros(first)
	n, failed := strconv.ParseInt(second, 10, 64)
	return jobs.Token(t), n, err == nil && failed == nil
}

// SaidOf encodes the output of an attempt: a line with its token and its gap, and maybe its runs,
// then the bytes. It is empty if there was no output.
func SaidOf(r jobs.Result) []byte {
	data, gap := r.Output, r.Gap
	if len(data) > OutputMax {
		data, gap.At = data[:OutputMax], min(gap.At, OutputMax)
	}
	if len(data) == 0 && gap.Left == 0 {
		return nil
	}
	head := fmt.Sprintf("%d %d %d", r.Token, gap.At, gap.Left)
	if runs := RunsText(r.Runs); runs != "" {
		head += " " + runs
	}
	return append([]byte(head+"\n"), data...)
}

// ReadSaid decodes the output of an attempt. A text without a readable head counts as output.
func ReadSaid(text string) (token jobs.Token, gap jobs.Gap, runs jobs.Runs, data []byte) {
	head, rest, ok := strings.Cut(text, "\n")
	var t int64
	n, err := fmt.Sscanf(head, "%d %d %d", &t, &gap.At, &gap.Left)
	if !ok || n != 3 || err != nil || gap.Left < 0 || gap.At < 0 || gap.At > len(rest) {
		return 0, jobs.Gap{}, jobs.Runs{}, []byte(text)
	}
	if words := strings.SplitN(head, " ", 4); len(words) == 4 {
		runs = ReadRuns(words[3])
	}
	return jobs.Token(t), gap, runs, []byte(rest)
}

// OutputMax bounds the bytes of a result's output; workers have a smaller bound of their own.
const OutputMax = 1 << 20
