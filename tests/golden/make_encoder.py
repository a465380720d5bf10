# SPDX-License-Identifier: Apache-2.0
"""Names, shapes, float64 outputs and gradients of transformers' BERT: python3 make_encoder.py writes encoder.h."""
import os

os.environ["HF_HUB_OFFLINE"] = "1"
import torch
import transformers

import cpp_table
import network_table

ROWS, TOKENS = 2, 7
config = transformers.BertConfig(vocab_size=13, max_position_embeddings=9, hidden_size=8, num_hidden_layers=2,
                                 num_attention_heads=2, intermediate_size=20, num_labels=3, hidden_dropout_prob=0,
                                 attention_probs_dropout_prob=0,
                                 pad_token_id=None)  # otherwise token 0 gets no gradient
tokens = (torch.arange(ROWS * TOKENS) * 5 % 13).reshape(ROWS, TOKENS)
seen = torch.ones_like(tokens)
seen[1, 5:] = 0
types = torch.zeros_like(tokens)
types[:, 4:] = 1

lines = []
for name, kind in (("tokens", transformers.BertForMaskedLM), ("rows", transformers.BertForSequenceClassification)):
    network = kind(config).double().train()
    state = network_table.state_of(network)
    network_table.fill(state)
    plain = network(input_ids=tokens).logits
    logits = network(input_ids=tokens, attention_mask=seen, token_type_ids=types).logits
    (logits * network_table.wave(logits.shape)).sum().backward()
    lines += network_table.state_lines(f"encoder_{name}_state", state)
    lines.append(cpp_table.array(f"encoder_{name}_plain", plain.detach().flatten()[::5]))
    lines.append(cpp_table.array(f"encoder_{name}_padded", logits.detach().flatten()))
    lines.append(cpp_table.array(f"encoder_{name}_gradients", network_table.gradient_sums(network)))
cpp_table.write("encoder.h", "make_encoder.py", lines, network_table.INCLUDES)
