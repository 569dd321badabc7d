package kinds

// checkStep does a step of kind check: a command that only looks. It runs as any command does; that
// it changes nothing shows in the decisions about it.
type checkStep struct{ runStep }

func newCheckStep(h Hand) Kind { return checkStep{commandOf(h)} }
