package form

import (
	"errors"
	"strconv"
	"strings"
	"testing"
)

func TestOnlyANewerFormIsRefused(t *testing.T) {
	t.Parallel()
	next := strconv.Itoa(Mine + 1)
	for _, tt := range []struct {
		field, by string
		refused   bool
		behind    bool
	}{
		{"", "", false, true}, // before there was a number
		{strconv.Itoa(Least), "0.1.0", false, false},
		{strconv.Itoa(Least), "", false, true},
		{"0", "0.0.1", false, true},
		{strconv.Itoa(Mine), "0.1.0", false, false},
		{next, "0.9.0", true, false},
		{next, "", true, true},
		{"a number of the future", "x", true, true},
	} {
		err := Check("zone east", tt.field, tt.by)
		var newer *Error
		if errors.As(err, &newer) != tt.refused {
			t.Errorf("%q by %q: %v", tt.field, tt.by, err)
		}
		if tt.refused && (newer.Least <= Mine || !strings.Contains(err.Error(), "zone east") ||
			!strings.Contains(err.Error(), tt.by)) {
			t.Errorf("%q by %q: %v", tt.field, tt.by, err)
		}
		if got := Behind(tt.field, tt.by); got != tt.behind {
			t.Errorf("%q by %q: behind is %v", tt.field, tt.by, got)
		}
	}
}

func FuzzOf(f *testing.F) {
	f.Add("ERR user_script:31: muster-form east 2 0.3.0 script: 12ab, on @user_script:31.")
	f.Add("muster-form hub 99999999999999999999 ")
	f.Add("muster-form east two 0.3.0")
	f.Fuzz(func(t *testing.T, text string) {
		e := Of(text, "hub")
		if e == nil {
			return
		}
		if e.Where == "" || e.Error() == "" || strings.Contains(e.By, " ") {
			t.Errorf("%q: %+v", text, e)
		}
	})
}

func TestTheErrorOfAScriptIsRead(t *testing.T) {
	t.Parallel()
	got := Of("ERR user_script:31: muster-form east 2 0.3.0 script: 12ab, on @user_script:31.", "hub")
	if got == nil || *got != (Error{"zone east", 2, "0.3.0"}) {
		t.Errorf("%+v", got)
	}
	if got := Of("muster-form hub 3 1.0.0", "hub"); got == nil || got.Where != "the hub" {
		t.Errorf("%+v", got)
	}
	if got := Of("ERR unknown command", "hub"); got != nil {
		t.Errorf("%+v", got)
	}
}
