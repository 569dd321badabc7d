package submit

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestThePasswordOfSudoIsAskedForAndNeverAnArgument(t *testing.T) {
	t.Parallel()
	read := func(path string) ([]byte, error) {
		if path != "pw" {
			return nil, errors.New("no such file")
		}
		return []byte("s3cret\n"), nil
	}
	asked := func(context.Context, string) (string, error) { return "typed", nil }
	for _, test := range []struct {
		flag  string
		ask   keyhole
		dry   bool
		want  string
		words string
	}{
		{"@pw", nil, false, "s3cret", ""},
		{"ask", asked, false, "typed", ""},
		{"", asked, false, "", ""},
		{"ask", nil, false, "", "there is no terminal"},
		{"ask", asked, true, "", "a plan asks nobody"},
		{"hunter2", asked, false, "", "history of the shell: want @FILE"},
		{"@nowhere", asked, false, "", "--become-password: no such file"},
	} {
		f := RunFlags{become: test.flag, dry: test.dry}
		got, err := f.WithBecome(t.Context(), nil, test.ask, read)
		if got["become.password"] != test.want || (err == nil) != (test.words == "") ||
			err != nil && (!strings.Contains(err.Error(), test.words) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %q, %v; want %q, %q", test.flag, got, err, test.want, test.words)
		}
	}
}

// A reference is an argument, because it is no secret; a text that is none may be one.
func TestThePasswordOfSudoCanBeAReference(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"ref:vault:kv/{{host.name}}#pw": "", "ref:hunter2": "names no known place"} {
		f := RunFlags{become: flag, Args: []string{"a=b"}}
		got, err := f.WithBecome(t.Context(), nil, nil, nil)
		args := strings.Join(f.Args, " ")
		if want == "" && (err != nil || len(got) > 0 || args != "a=b become.password="+flag) {
			t.Errorf("%s: %q, %v, secrets %v", flag, args, err, got)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%s: %v, want %q", flag, err, want)
		}
	}
}
