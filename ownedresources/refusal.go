package ownedresources

import "strings"

// refusal is the API server's own error, less the objects that it quotes: a pod template in it
// shows environment variables to everybody who reads the owner's status or the log.
type refusal struct {
	error
	message string
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return r.error }

func withoutValues(err error) error {
	message := err.Error()
	from, to := strings.Index(message, "{"), strings.LastIndex(message, "}")
	if from < 0 || to < from {
		return err
	}
	return &refusal{error: err, message: message[:from] + "{…}" + message[to+1:]}
}
