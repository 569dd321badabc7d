package tasks

// RoundTrip reads the place of a stream and writes it again.
func RoundTrip(text string) (string, error) {
	at, err := parsePositions(text)
	return at.String(), err
}
