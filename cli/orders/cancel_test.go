package orders

import "testing"

// Two tasks are not mistaken for misspelt jobs.
func TestTasksAreCancelledOneAtATime(t *testing.T) {
	t.Parallel()
	_, _, err := cancelArgs([]string{"0wcy7y2fb2", "0wcy7y2fb3"})
	if want := "cancel one task at a time, not 2: 0wcy7y2fb2 0wcy7y2fb3"; err == nil || err.Error() != want {
		t.Errorf("%v, want %q", err, want)
	}
	id, list, err := cancelArgs([]string{"0wcy7y2fb2:fw1", "0wcy7y2fb2:fw2"})
	if err != nil || id != "0wcy7y2fb2" || len(list) != 2 {
		t.Errorf("%s %v, %v", id, list, err)
	}
}
