package kinds

// Place is a kind of request or event at which a fault can be injected.
type Place int

// A request is a request to the API server, an effect or a query. An effect changes something outside of the cluster, and a query reads it.
const (
	AtRequest      Place = iota // any request
	AtWrite                     // a request that may change something
	AtAPIWrite                  // a write to the API server
	AtModification              // an update, a patch or an apply: another writer may have written the object before
	AtCreation                  // a request that creates an object
	AtOwnedWrite                // a later write of an object that the operator created
	AtAnswered                  // a request that the API server, the handler of a RoundTripper, or an API of package fakeapi answers
	AtAPICall                   // a call of an API of package fakeapi
	AtStaleRead                 // a read in an API of package fakeapi that has changed recently, so that an old answer is possible
	AtChange                    // the change of an object
	AtDeletion                  // a deletion by the user
	AtReviewed                  // a write for which a webhook is called
	AtConverted                 // a request in a version that a webhook converts
	AtUserWrite                 // a write of the user that calls a webhook whose failure policy is Ignore
	AtBatch                     // several requests that the operator sends at once
)

// Rule describes a kind of fault.
type Rule struct {
	Kind            Fault
	Where           Place
	NeedsNextAction bool   // the user must have an action left that is not a Wait
	NeedsWatch      bool   // the process must watch the request's kind
	NeedsTwo        bool   // the process must watch the kind of the change both as whole objects and as metadata
	NeedsRecreation bool   // the change must be a deletion after which the user's next action creates the object again
	ShowsPast       bool   // a process begins with an old cache, which shows an earlier state
	Words           string // what happens, for the trace
}

// RuleOf returns the rule of a kind, nil if the kind does not exist.
func RuleOf(kind Fault) *Rule {
	for i := range Rules {
		if Rules[i].Kind == kind {
			return &Rules[i]
		}
	}
	return nil
}

// Faults returns all kinds of faults, in the order in which they are tried.
func Faults() []Fault {
	all := make([]Fault, len(Rules))
	for i := range Rules {
		all[i] = Rules[i].Kind
	}
	return all
}
