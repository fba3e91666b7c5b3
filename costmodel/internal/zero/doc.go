// Package zero models DeepSpeed's ZeRO (0.19.8) outside the ops: the settings of its configuration
// file, and the parameters that stage 3 has gathered at every moment of a step.
package zero
