#!/bin/sh
# llama.cpp for the plan of tiny
case $0 in */*) HERE=${0%/*};; *) HERE=.;; esac
exec llama-server -m "$HERE/"tiny.gguf -c 8192 -np 1 -ub 512 -ngl 5 -fa on -ctk f16 -ctv f16 --fit off -ts 4,1 --mmproj "$HERE/"tiny-mmproj.gguf -md "$HERE/"tiny.gguf --spec-type draft-simple --spec-draft-n-max 3 -ngld all -devd CUDA1 -ctkd f16 -ctvd f16 "$@"
