package codec

import (
	"strings"
	"testing"
)

func FuzzReadGrant(f *testing.F) {
	f.Add("0wcy7y2fb2:fw1\t1\tfresh\t1\t0\t0\t0\t0\t1\t60000000\t0\tn1/1\t{}", `{"name":"fw1"}`)
	f.Add("\t\t", "")
	f.Fuzz(func(t *testing.T, text, host string) {
		if _, err := ReadGrant(text, host); err != nil && err.Error() == "" {
			t.Error("an error without words")
		}
	})
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb\r\xff")
	f.Add(strings.Repeat("ä", 500))
	f.Fuzz(func(t *testing.T, s string) {
		got := OneLine(s)
		if len(got) > errorMax || strings.ContainsAny(got, "\n\r") || strings.ToValidUTF8(got, "") != got {
			t.Errorf("%q became %q", s, got)
		}
	})
}
