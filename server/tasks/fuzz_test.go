package tasks_test

import (
	"strings"
	"testing"

	"muster/server/tasks"
)

func FuzzPlaceOfAStream(f *testing.F) {
	for _, s := range []string{"", "default=0", "default=1763720000000-0,eu=1763720000001-12", "a=1,a=2",
		"default=", "=1", "a=1-2-3", "a b=1", "a=1,", "a=99999999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, err := tasks.RoundTrip(text)
		if err != nil {
			return
		}
		if strings.ContainsAny(once, "\r\n") {
			t.Errorf("%q becomes %q, which would end a line of the stream", text, once)
		}
		twice, err := tasks.RoundTrip(once)
		if err != nil || twice != once {
			t.Errorf("%q becomes %q and then %q, %v", text, once, twice, err)
		}
	})
}
