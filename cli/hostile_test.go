package cli

import (
	"bytes"
	"errors"
	"testing"
)

func TestErrorsAreHarmless(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	Complain(&b, errors.Join(errors.New("connect fw1"+hostile), errors.New("two")))
	const want = "muster: connect fw1a\\x1b]0;title\\x07\\x1b[31mred\\x0d\\u202eabc\\u200bd\\u0085e\\xff\\x7f\n" +
		"muster: \tf 消防 ok\nmuster: two\n"
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
