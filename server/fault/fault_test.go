package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"muster/server/fault"
)

// A joined error, in whatever depth, becomes one mistake for each thing that is wrong.
func TestEachMistakeOfAnErrorStandsAlone(t *testing.T) {
	deep := errors.Join(errors.New("a"), fmt.Errorf("%w and %w", errors.New("b"), errors.New("c")),
		errors.Join(errors.New("d")))
	var got []string
	for _, err := range fault.Each("body.on", deep) {
		var m *fault.Mistake
		if !errors.As(err, &m) || m.Location != "body.on" {
			t.Fatalf("%#v is no mistake at body.on", err)
		}
		got = append(got, m.Message)
	}
	if fmt.Sprint(got) != "[a b c d]" {
		t.Errorf("got %q, want a, b, c and d", got)
	}
	if none := fault.Each("body.on", nil); none != nil {
		t.Errorf("no error has the mistakes %v", none)
	}
}

func TestARefusalCountsItsMistakes(t *testing.T) {
	err := fault.Refuse([]error{fault.At("body.at", "%s is in the past", "yesterday"), errors.New("b")})
	var e *fault.Error
	if !errors.As(err, &e) || e.Kind != fault.Refused || len(e.Mistakes) != 2 || err.Error() != "2 mistakes" {
		t.Errorf("got %#v", err)
	}
}
