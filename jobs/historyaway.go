package jobs

// HistoryAway says that events cannot be stored in history at the moment.
type HistoryAway struct {
	Since Time   `json:"since"`
	Note  string `json:"note"` // why, when it began
	// Stored counts the stored entries of each zone's event stream, of zones where that is known.
	Stored map[string]int64 `json:"stored"`
}

// Recalled counts what a zone learned from history about jobs that it had forgotten.
type Recalled struct {
	Ended int `json:"ended"` // jobs that had ended
	Lost  int `json:"lost"`  // jobs that had begun: the next worker finds out what ran
}
