package history_test

import (
	"errors"
	"testing"

	"muster/history"
)

func FuzzCursor(f *testing.F) {
	for _, text := range []string{"", "1763720000000000:0wcy7y2fb2:fw001", "0:0wcy7y2fb2:a", "-1:0wcy7y2fb2:a",
		"1:0wcy7y2fb2", "x:0wcy7y2fb2:a", "1:' or 1=1 --:a", "99999999999999999999:0wcy7y2fb2:a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		again, err := history.Cursor(text)
		if err != nil {
			if !errors.Is(err, history.ErrCursor) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if twice, err := history.Cursor(again); err != nil || twice != again {
			t.Errorf("%q becomes %q, and that %q, %v", text, again, twice, err)
		}
	})
}
