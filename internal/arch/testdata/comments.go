// Package comments has wrong names in comments. Those that TestNamesInComments must find are in
// the order of its rules.
package comments

import "time"

// Moved is a type that has another name now.
type Counter struct {
	Sent int

	// Answers and Refusals are two counts, one of which is not declared here. Within this sentence,
	// Answers is right, and so is Linux, but Handed is not.
	Answers, Failures int

	// The following fields are a group.
	mu, closed int

	// A Limit follows an article.
	Limit int

	// We begin as we like where a name is not exported.
	since time.Time
}

// renamed returns the sum.
func (c *Counter) Total() int { return c.Sent }

// When a comment of a function is a sentence, it must begin with the name, too.
func Reset() {}

// Nobody outside needs this sentence to begin with the name.
func reset() {}

// The block's comment is free.
const (
	// forgotten is a constant with another name.
	First = 1
	// Second is right.
	Second = 2
)

// TestOfAnotherName is not this test.
func TestOwnName() {}

// A story begins with any word.
func TestStory() {}

// restart is not in this file's code.
func TestOtherStory() {
	// Counter.Sent, Counter.Total and counter.Total are declared, and so is time.Second. Counter.Sum,
	// counter.Sum and time.Pause are not. [Counter] and [time.Time] are right, [Clock] is not.
	//
	//	indented.Names are not checked
	//
	// Neither is "quoted.Text". oldHelper is gone, and so is OldHelper. gRPC is not a name in code,
	// nor is docs/comments.go.
	_ = time.Now
}
