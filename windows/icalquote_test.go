package windows

import (
	"strings"
	"testing"
)

// A file that is named as a calendar may be the wrong file: a message about one of its rules
// repeats only the first word.
func TestMessagesAboutARuleRepeatNoMoreThanAWord(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"FREQ=DAILY;BYDAY=hunter:2$secret", "FREQ=hunter:2$secret",
		"FREQ=SECONDLY;BYHOUR=2$secret", "hunter=2$secret"} {
		_, err := parseRule(property{line: 3, value: text}, 0, Zone{})
		if err == nil {
			t.Errorf("%s is taken for a rule", text)
		} else if said := strings.ToLower(err.Error()); strings.Contains(said, "secret") {
			t.Errorf("of %s the message repeats %q", text, err)
		}
	}
}
