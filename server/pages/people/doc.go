// Package people has the pages of what people did and are: reviews of broken glass, and sessions.
//
// Floor 6: may import server/pages/frame and what is below it.
package people

import "muster/server/pages/frame"

// Content returns the pages.
func Content() frame.Content {
	return frame.Content{
		Views: map[string]frame.View{"/reviews": theReviews, "/sessions": theSessions},
		Orders: map[string]frame.Planner{"/reviews/{task}/order/review": review,
			"/sessions/{session}/order/end": endSession},
	}
}
