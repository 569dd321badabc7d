package jobs

import "testing"

func TestWhatAWaitingJobSaysIsFound(t *testing.T) {
	t.Parallel()
	for saved, want := range map[string]string{
		"": "", "{}": "", "{": "", `{"saved":{"saying":"no"}}`: "",
		`{"probe":{"since":1,"saying":"hidden"},"saved":{"a":"b"}}`: "hidden",
		`{"why":"the pair"}`: "the pair",
	} {
		if got := Saying(saved); got != want {
			t.Errorf("Saying(%s) = %q, want %q", saved, got, want)
		}
	}
}
