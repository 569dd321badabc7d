package jobs

// HistoryAway says that what happens is not stored in history at the moment.
type HistoryAway struct {
	Since Time   `json:"since"`
	Note  string `json:"note"` // why, as it began
	// Stored is how many entries of the event stream of each zone were stored by then, as
	// Redis counts them; where that is not known there is no number.
	Stored map[string]int64 `json:"stored"`
}

// Recalled is what a zone took over of what only history knew.
type Recalled struct {
	Ended int `json:"ended"` // jobs that had ended
	Lost  int `json:"lost"`  // jobs of which an attempt had begun: whoever has them next finds out
}
