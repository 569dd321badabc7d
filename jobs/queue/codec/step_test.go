package codec

import (
	"strings"
	"testing"

	"muster/jobs"
)

const granted = "0wcy7y2fb2:fw1\t1\tfresh\t1\t0\t0\t0\t0\t1\t60000000\t0\tn1/1\t\t{}"

// A field that this muster does not know may be a limit, such as a window: what has one is refused,
// with words, and is not taken without it.
func TestRecordsOfANewerMusterAreRefused(t *testing.T) {
	t.Parallel()
	reply, err := ReadReply(Reader{Left: []any{"ok", int64(5), int64(0), int64(0), int64(2),
		granted, `{"name":"fw1","only_on":"mondays"}`, strings.Replace(granted, "fw1", "fw2", 1), `{"name":"fw2"}`,
		"t1", `{"operator":"bob","only_on":"mondays"}`, "t2", `{"operator":"bob"}`, "t3", `{} {}`}})
	if err != nil || len(reply.Jobs) != 2 {
		t.Fatalf("got %+v, %v", reply, err)
	}
	for _, of := range []string{"0wcy7y2fb2:fw1", "t1"} {
		if why := reply.Unread[of]; !strings.Contains(why, errNewer.Error()) || !strings.Contains(why, "only_on") {
			t.Errorf("%s with a strange field: %q", of, why)
		}
	}
	if bad, good := reply.Jobs[0].Host, reply.Jobs[1].Host; bad != nil || good == nil || good.Name != "fw2" {
		t.Errorf("hosts: %+v, %+v", bad, good)
	}
	if len(reply.Unread) != 3 || reply.Specs["t2"].Operator != "bob" || reply.Unread["t3"] == "" {
		t.Errorf("specs: %v, unread: %v", reply.Specs, reply.Unread)
	}
	for _, id := range []jobs.TaskID{"t1", "t3"} { // else the worker would ask for it again and again
		if _, has := reply.Specs[id]; !has {
			t.Errorf("the spec of %s is not among those that the worker need not ask for", id)
		}
	}
}

func FuzzReadGrant(f *testing.F) {
	f.Add("0wcy7y2fb2:fw1\t1\tfresh\t1\t0\t0\t0\t0\t1\t60000000\t0\tn1/1\t{}", `{"name":"fw1"}`)
	f.Add("\t\t", "")
	f.Fuzz(func(t *testing.T, text, host string) {
		if _, _, err := ReadGrant(text, host); err != nil && err.Error() == "" {
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
