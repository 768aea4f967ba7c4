package verdict

import (
	"fmt"
	"strings"

	"github.com/opblocks/opblocks/reconcile/reconciletest/internal/simulation/request"
)

// Unready is an end without success that the scenario asks for. Reason is the reason of the step. Without steps it is a part of
// the message of the pass.
type Unready struct {
	Object request.ObjectID
	Reason string
}

// Problem is a step or a pass that did not succeed.
type Problem struct {
	Text    string // what is wrong, and what to do
	Message string // only the message with which the step or the pass ended
	Cause   string // the text without the names of objects
	Object  string // the name of the object
}

// Judgement is the result of Judge.
type Judgement struct {
	Problems []Problem
	Lines    []string  // steps that wait in the end and have succeeded before, and conditions that say that an object is not ready
	Missing  []Missing // what the scenario asks for in Unready and did not happen
}

// Missing is an end without success that the scenario asks for, and that did not happen.
type Missing struct {
	Asked   Unready
	Instead []string // the other reasons for which the object is not ready
}

// Judge judges all parts at the end of the run. asked is what the scenario asks for.
func (b *Book) Judge(asked []Unready) (j Judgement) {
	met := make([]bool, len(asked))
	reasons := map[request.ObjectID][]string{}
	for _, p := range b.parts {
		wrong, wait := p.judge()
		if !wrong && !wait {
			continue
		}
		reasons[p.object.ID] = append(reasons[p.object.ID], p.reason())
		excused := false
		for i := range asked {
			if asked[i].isFor(p) {
				met[i], excused = true, true
			}
		}
		switch {
		case excused:
		case wrong:
			j.Problems = append(j.Problems, p.problem())
		default:
			j.Lines = append(j.Lines, "Without any fault, "+p.describe())
		}
	}
	for i := range asked {
		if !met[i] {
			j.Missing = append(j.Missing, Missing{asked[i], reasons[asked[i].Object]})
		}
	}
	return j
}

// Failing returns the steps and passes that had failed or were stalled when the operator was quiet the last time. It may be called before
// the end of the run.
func (b *Book) Failing() (problems []Problem) {
	for _, p := range b.parts {
		if !p.gone && !p.now.IsStatus && (p.now.State == Failed || p.now.State == Stalled) {
			problems = append(problems, p.problem())
		}
	}
	return problems
}

// judge says how the report mentions the part. wrong is true for a problem: the part has failed or is stalled, or it waits and has never
// succeeded. waits is true for a mere line: the part waits and has succeeded before, or only the conditions of the object say that it is
// not ready. If both are false, the report does not mention the part.
func (p *part) judge() (wrong, waits bool) {
	if p.rests == 0 || p.cleanup && p.gone {
		return false, false
	}
	switch p.now.State {
	case Failed, Stalled:
		return !p.now.IsStatus, p.now.IsStatus
	case Waiting:
		wrong = !p.succeeded && !p.now.IsStatus
		return wrong, !wrong
	}
	return false, false
}

// isFor reports whether the Unready is about this part.
func (u *Unready) isFor(p *part) bool {
	if u.Object != p.object.ID {
		return false
	}
	return u.Reason == p.now.Reason || p.step == "" && u.Reason != "" && strings.Contains(p.now.Message, u.Reason)
}

func (p *part) problem() Problem {
	var b strings.Builder
	b.WriteString("Without any fault, " + p.describe())
	if p.now.Hint != "" {
		b.WriteString("\n" + p.now.Hint)
	}
	if p.gone {
		b.WriteString("\nOnly the deletion of the object has ended that")
	}
	fmt.Fprintf(&b, "\nIf it is meant to end so, say it in the scenario: Unready: []reconciletest.Unready{{Object: …, Reason: %q}}", p.reason())
	return Problem{Text: b.String(), Message: p.now.Message, Cause: p.subject("of a "+p.object.ID.Kind.Kind) + " " + p.words(), Object: p.object.Name}
}

// reason returns the Reason with which an Unready names this part.
func (p *part) reason() string {
	if p.step != "" || p.now.IsStatus {
		return p.now.Reason
	}
	reason, _, _ := strings.Cut(strings.TrimPrefix(p.now.Message, "in an error: "), "\n")
	return reason
}

// describe returns how the part has ended, and since which action.
func (p *part) describe() string {
	switch {
	case p.now.IsStatus:
		return fmt.Sprintf("the conditions of %s say in the end that it is not ready, since %q: %s: %s", p.object.Name, p.since, p.now.Reason, p.now.Message)
	case p.step == "":
		return fmt.Sprintf("%spasses over %s after %q end %s", p.counted, p.object.Name, p.since, p.now.Message)
	}
	return fmt.Sprintf("%s %s since %q: %s: %s", p.subject("of "+p.object.Name), p.words(), p.since, p.now.Reason, p.now.Message)
}

func (p *part) subject(of string) string {
	switch {
	case p.step == "":
		return "a pass over" + strings.TrimPrefix(of, "of")
	case p.cleanup:
		return fmt.Sprintf("the cleanup of step %q %s", p.step, of)
	}
	return fmt.Sprintf("step %q %s", p.step, of)
}

// words returns how the part has ended, in a few words.
func (p *part) words() string {
	never := ""
	if !p.succeeded && !p.cleanup {
		never = "has never succeeded, and "
	}
	switch p.now.State {
	case Waiting:
		if p.succeeded {
			return "waits, though it had succeeded before,"
		}
		return never + "waits"
	case Stalled:
		return never + "is stalled"
	}
	return never + "fails"
}

// overcome returns a line that says that the part has failed before it succeeded.
func (p *part) overcome(action string) string {
	return fmt.Sprintf("%s after %q: %d of %d passes failed before it succeeded: %s", p.subject("of "+p.object.Name), action, p.failures, p.passes, p.failure)
}
